// A list of any length: search, sort by any column, and only the rows in sight in the document.

import {html, signal, useEffect, useLayoutEffect, useMemo, useRef, useState} from "../vendor/preact.js";
import {compareTexts} from "./ids.js";

const AROUND = 6;

const narrowQuery = matchMedia("(max-width: 720px)");
export const isNarrow = signal(narrowQuery.matches);
narrowQuery.addEventListener("change", () => (isNarrow.value = narrowQuery.matches));

const TEXTS = new WeakMap();

/** Rows in which every word of `search` is found in some text or number. */
export function found(rows, search) {
  const wanted = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length) return rows;
  return rows.filter((row) => {
    let text = TEXTS.get(row);
    if (text === undefined) {
      text = textOf(row).toLowerCase();
      TEXTS.set(row, text);
    }
    return wanted.every((word) => text.includes(word));
  });
}

function textOf(value) {
  if (value == null) return "";
  if (Array.isArray(value)) return value.map(textOf).join(" ");
  if (typeof value === "object") return Object.values(value).map(textOf).join(" ");
  return String(value);
}

/** `rows` by the column that `sort` names, a minus before it for descending; what is not known comes last. */
export function sorted(rows, columns, sort) {
  const descending = sort.startsWith("-");
  const column = columns.find((one) => one.key === sort.replace(/^-/, ""));
  if (!column) return rows;
  const keyed = rows.map((row) => [column.value ? column.value(row) : row[column.key], row]);
  const isKnown = (value) => value != null && value !== "";
  keyed.sort(([a], [b]) => {
    if (!isKnown(a) || !isKnown(b)) return Number(isKnown(b)) - Number(isKnown(a));
    return (descending ? -1 : 1) * (typeof a === "number" && typeof b === "number" ? a - b : compareTexts(String(a), String(b)));
  });
  return keyed.map(([, row]) => row);
}

/**
 * A grid of `rows`. `columns`: key, label, `value` (what it sorts by, the field itself unless given), `cell` (what it
 * shows), `align`, `least` width in px, its share (`grow`) of what is left, `wide` for those left out, the last first,
 * where there is no room.
 */
export function List({name, label, columns, rows, sort, onSort, selected, onSelect, empty}) {
  const scroller = useRef(null);
  const [range, setRange] = useState({from: 0, to: 60});
  const [active, setActive] = useState(null);
  const rowHeight = isNarrow.value ? 44 : 32;
  const [room, setRoom] = useState(0);
  const shown = useMemo(() => fitting(columns, room), [columns, room]);
  const ordered = useMemo(() => sorted(rows, columns, sort), [rows, columns, sort]);

  const measure = () => {
    const {scrollTop, clientHeight} = scroller.current;
    const from = Math.max(0, Math.floor(scrollTop / rowHeight) - AROUND);
    const to = Math.ceil((scrollTop + clientHeight) / rowHeight) + AROUND;
    setRange((old) => (old.from === from && old.to === to ? old : {from, to}));
  };
  useLayoutEffect(() => {
    const watch = new ResizeObserver(([{contentRect}]) => {
      setRoom(contentRect.width);
      measure();
    });
    watch.observe(scroller.current);
    return () => watch.disconnect();
  }, [rowHeight]);
  useLayoutEffect(() => {
    const isTight = neededBy(shown) > room;
    const width = ({least, grow}) => (isTight ? `minmax(0, ${least}fr)` : `minmax(${least}px, ${grow}fr)`);
    scroller.current.style.setProperty("--columns", shown.map(width).join(" "));
    scroller.current.style.setProperty("--row-height", `${rowHeight}px`);
  }, [shown, room, rowHeight]);
  useEffect(() => {
    if (selected != null) setActive(selected);
  }, [selected]);

  const indexOf = (id) => ordered.findIndex((row) => row.id === id);
  const reveal = (index) => {
    const box = scroller.current;
    const top = index * rowHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + 2 * rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + 2 * rowHeight - box.clientHeight;
  };
  const onKeyDown = (event) => {
    if (event.target !== scroller.current || !ordered.length) return;
    const page = Math.max(1, Math.floor(scroller.current.clientHeight / rowHeight) - 2);
    const at = indexOf(active);
    const next = {
      ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: ordered.length - 1,
    }[event.key];
    if (next !== undefined) {
      const index = Math.min(Math.max(next, 0), ordered.length - 1);
      setActive(ordered[index].id);
      reveal(index);
    } else if ((event.key === "Enter" || event.key === " ") && at >= 0) {
      onSelect?.(ordered[at]);
    } else {
      return;
    }
    event.preventDefault();
  };
  const onFocus = (event) => {
    if (event.target === scroller.current && indexOf(active) < 0 && ordered.length) setActive(ordered[0].id);
  };

  const visible = ordered.slice(range.from, range.to);
  const rowId = (index) => `${name}-row-${index}`;
  const activeAt = active == null ? -1 : indexOf(active);
  const isActiveShown = activeAt >= range.from && activeAt < range.to;
  return html`<div class="list" ref=${scroller} role="grid" tabindex="0" aria-label=${label} aria-rowcount=${ordered.length + 1}
      aria-colcount=${shown.length} aria-activedescendant=${isActiveShown ? rowId(activeAt) : null}
      onScroll=${measure} onKeyDown=${onKeyDown} onFocus=${onFocus}>
    <div class="list-head" role="rowgroup"><div class="row" role="row" aria-rowindex="1">
      ${shown.map((column) => html`<${Head} key=${column.key} ...${{column, sort, onSort}} />`)}
    </div></div>
    <div class="list-body" role="rowgroup" ref=${(body) => body && (body.style.height = `${ordered.length * rowHeight}px`)}>
      ${visible.map((row, at) => {
        const index = range.from + at;
        const isSelected = row.id === selected;
        return html`<div key=${row.id} id=${rowId(index)} role="row" aria-rowindex=${index + 2} aria-selected=${onSelect ? isSelected : null}
            class=${`row${isSelected ? " is-selected" : ""}${row.id === active ? " is-active" : ""}`}
            ref=${(element) => element && (element.style.transform = `translateY(${index * rowHeight}px)`)}
            onClick=${(event) => event.target.closest("a, button") || (setActive(row.id), onSelect?.(row))}>
          ${shown.map((column) => html`<div key=${column.key} role="gridcell" class=${column.align === "end" ? "cell is-end" : "cell"}
            title=${column.title?.(row)}>${column.cell ? column.cell(row) : row[column.key]}</div>`)}
        </div>`;
      })}
    </div>
    ${!ordered.length && html`<p class="empty">${empty}</p>`}
  </div>`;
}

const GAP = 14;
const neededBy = (columns) => columns.reduce((sum, column) => sum + column.least + GAP, GAP);

/** The columns for which `room` px suffice. */
export function fitting(columns, room) {
  const shown = [...columns];
  while (neededBy(shown) > room) {
    const at = shown.findLastIndex((column) => column.wide);
    if (at < 0) break;
    shown.splice(at, 1);
  }
  return shown;
}

function Head({column, sort, onSort}) {
  const direction = sort === column.key ? "ascending" : sort === `-${column.key}` ? "descending" : null;
  const next = direction === "descending" ? column.key : direction === "ascending" ? `-${column.key}` : column.align === "end" ? `-${column.key}` : column.key;
  return html`<div role="columnheader" aria-sort=${direction ?? "none"} class=${column.align === "end" ? "cell is-end" : "cell"}>
    <button type="button" class="sort" onClick=${() => onSort(next)}>${column.label}<span aria-hidden="true" class="sort-sign">${
      direction === "ascending" ? "▲" : direction === "descending" ? "▼" : ""
    }</span></button>
  </div>`;
}
