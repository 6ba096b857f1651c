"use strict";
// Questions and answers. A live page asks its server; a file finds the answers in itself.
const DATA = JSON.parse(document.getElementById("data").textContent);
const find = (what, inside = document) => inside.querySelector(what);

// An element with text or children; text is never read as markup.
function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

async function ask(verb, question) {
  if (!DATA.live) return answerFromFile(verb, question);
  let reply;
  try {
    reply = await fetch("/api/" + verb, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question),
    });
  } catch {
    throw new Error("The program does not answer. Start it again: torchcaps app");
  }
  const answer = await reply.json();
  if (!reply.ok) throw new Error(answer.error);
  return answer;
}

function answerFromFile(verb, question) {
  const looks = DATA.looks;
  const look = question.image ? looks[question.image.example] : null;
  switch (verb) {
    case "look": return look;
    case "cover": return { heat: look.cover, done: true };
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
