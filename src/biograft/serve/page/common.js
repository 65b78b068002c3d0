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
