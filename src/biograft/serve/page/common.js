"use strict";
/* What both pages use: elements, buttons, and a question. */

const $ = (id) => document.getElementById(id);

function make(tag, content, attributes = {}) {
  const element = document.createElement(tag);
  if (content !== undefined) element.append(...[content].flat());
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value);
  }
  return element;
}

function button(content, act, attributes = {}) {
  const element = make("button", content, {type: "button", ...attributes});
  element.addEventListener("click", act);
  return element;
}

function confirmed(question) {
  const dialog = $("ask");
  $("ask-title").textContent = question;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), {once: true});
  });
}

function saveAs(blob, name) {
  const url = URL.createObjectURL(blob);
  make("a", undefined, {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/* The key of the session: the token of the address that was opened, or what was typed. */
function sessionKey() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    sessionStorage.setItem("key", token);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return sessionStorage.getItem("key") || "";
}

addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) location.reload();
});
