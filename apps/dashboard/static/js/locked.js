// What stands in place of the views while the server answers reads by a token alone, and the page has none.

import {html, useState} from "../vendor/preact.js";
import {token} from "./api.js";
import {connection} from "./stream.js";

/** A field for a token, the same wherever one is asked for. */
export function TokenField({value, onType}) {
  return html`<label class="field">Token
    <input type="password" name="token" autocomplete="off" spellcheck="false" pattern="[!-~]+" title="The token's characters are printable ASCII without spaces" value=${value} onInput=${(event) => onType(event.target.value.trim())} autofocus /></label>`;
}

export function Locked() {
  const [typed, setTyped] = useState("");
  const {reason} = connection.value;
  const onSubmit = (event) => {
    event.preventDefault();
    token.value = typed;
  };
  return html`<form class="locked" onSubmit=${onSubmit}>
    <h1>A token is needed</h1>
    <p>This server tells of the fabric to those only who have the token of a viewer or an operator. It is kept in this page's memory only, and gone when the page is closed.</p>
    ${reason && html`<p class="note is-bad" role="alert">${reason}</p>`}
    <${TokenField} value=${typed} onType=${setTyped} />
    <div class="buttons"><button type="submit" class="button is-primary" disabled=${!typed}>Show the fabric</button></div>
  </form>`;
}
