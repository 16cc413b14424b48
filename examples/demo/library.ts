/** The library `demo`, which `npm start` serves: an assistant whose tools need no network. */
import { defineLibrary, definePersona } from "../../src/library/define.ts";
import { calculator } from "./calculator.ts";
import { dates } from "./dates.ts";
import docsIndex from "./docs-index.json" with { type: "json" };
import { notes } from "./notes.ts";
import { defineDocsSearch } from "./search-docs.ts";

const assistant = definePersona("assistant", {
  name: "Assistant",
  description: "A helpful assistant with a calculator, a calendar, notes and the project's documentation.",
  identity: {
    systemPrompt: "You are a helpful assistant. Answer briefly and in the language of the user.",
    instructions: [
      "Use the calculator for arithmetic and dates for calendar questions; do not work them out yourself.",
      "Answer questions about Dramatis from search_docs and name the file you found the answer in.",
      "When the user asks you to remember something in this conversation, keep it with notes.",
    ],
  },
  tools: { toolIds: ["calculator", "dates", "search_docs", "notes"] },
  examples: [
    "What is 12*(3+4)?",
    "What day is it in 30 days?",
    "Search the docs for crash recovery",
    "Remember that my cat is called Miso",
  ],
});

export const demoLibrary = defineLibrary("demo", {
  personas: [assistant],
  tools: [calculator, dates, defineDocsSearch(docsIndex), notes],
});
