import {html, render} from "../vendor/preact.js";
import {App} from "./app.js";
import {follow} from "./stream.js";

const page = document.getElementById("page");
page.replaceChildren();
render(html`<${App} />`, page);
follow();
