// What is asked again and again while somebody looks at it, since no stream tells it.

import {useEffect, useState} from "../vendor/preact.js";
import {read, token} from "./api.js";

/** The last answer, and what was wrong since, of what is asked again and again while it is shown; another `key` begins anew. */
export function useAsked(path, every_ms, key) {
  const [answer, setAnswer] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    let timer = null;
    let isLeft = false;
    const look = async () => {
      try {
        const found = await read(path);
        if (isLeft) return;
        setAnswer(found);
        setProblem(null);
      } catch (error) {
        if (isLeft) return;
        setProblem(error);
        if (error.status === 404) setAnswer(null);
      }
      timer = setTimeout(look, every_ms);
    };
    look();
    return () => {
      isLeft = true;
      clearTimeout(timer);
    };
  }, [path, key, token.value]);
  return [answer, problem];
}
