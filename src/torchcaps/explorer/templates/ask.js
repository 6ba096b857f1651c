"use strict";
// Questions and answers. A live page asks its server; a file finds the answers in itself.
const DATA = JSON.parse(document.getElementById("data").textContent);
const LONGEST = 60_000; // milliseconds that a question may take: a large network is loaded first
const find = (what, inside = document) => inside.querySelector(what);

// An element with text or children; text is never read as markup.
function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function makeButton(text, act) {
  const button = make("button", { type: "button", textContent: text });
  button.addEventListener("click", act);
  return button;
}

// A name, a bar that is filled by a share, and a number.
function makeBar(name, share, number) {
  const fill = make("i");
  fill.style.width = 100 * Math.min(1, Math.max(0, share)) + "%";
  return make("div", { className: "bar" }, make("span", { textContent: name, title: name }), make("b", {}, fill),
    make("span", { textContent: number }));
}

async function ask(verb, question) {
  if (!DATA.live) return answerFromFile(verb, question);
  let reply, answer;
  try {
    reply = await fetch("/api/" + verb, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question),
      signal: AbortSignal.timeout(LONGEST),
    });
    answer = await reply.json();
  } catch (error) {
    throw new Error(error.name === "TimeoutError" ? "The program has not answered for a minute. Look at its terminal."
      : "The program does not answer: it was stopped. Start it again (torchcaps app) and open the address that it prints.");
  }
  if (!reply.ok) throw new Error(answer.error);
  return answer;
}

function answerFromFile(verb, question) {
  const looks = DATA.looks;
  const look = question.image ? looks[question.image.example] : null;
  switch (verb) {
    case "look": return look;
    case "rounds": return { earlier: look.earlier };
    case "cover": return look.cover;
    case "typical": return look.typical;
    default: return {
      words: "This file holds " + looks.length + (looks.length === 1 ? " image." : " images."), next: 0,
      items: looks.map((each, number) => ({ number, picture: each.picture, label: each.name })),
    };
  }
}

function say(words) {
  const message = find("#message");
  message.textContent = words;
  message.hidden = !words;
  if (words) message.scrollIntoView({ block: "nearest" });
}
