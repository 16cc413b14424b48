/** The library `demo`, which `npm start` serves beside the built-in team. The tools of its agents need no network. */
import { researcher } from "../../src/library/agents/researcher.ts";
import { defineLibrary, definePersona } from "../../src/library/define/define.ts";
import { calculator } from "./calculator.ts";
import { dates } from "./dates.ts";
import { developer } from "./developer.ts";
import docsIndex from "./docs-index.json" with { type: "json" };
import { notes } from "./notes.ts";
import { defineDocsSearch } from "./search-docs.ts";

const assistant = definePersona("assistant", {
  name: "Assistant",
  description:
    "A helpful assistant with a memory, a calculator, a calendar, notes and the project's documentation.",
  identity: {
    systemPrompt: "You are a helpful assistant. Answer briefly and in the language of the user.",
    instructions: [
      "Use the calculator for arithmetic and dates for calendar questions; do not work them out yourself.",
      "Answer questions about Dramatis from search_docs and name the file you found the answer in.",
      "What the user asks you to remember goes to your memory, with remember. Use notes only for lists and notes of this conversation.",
    ],
  },
  tools: { toolIds: ["calculator", "dates", "search_docs", "notes"] },
  memory: { scope: "user", extract: true },
  examples: [
    "What is 12*(3+4)?",
    "What day is it in 30 days?",
    "Search the docs for crash recovery",
    "Remember that my cat is called Miso",
  ],
});

/** The built-in researcher, with the project's documentation to search. */
const docsResearcher = definePersona("researcher", {
  ...researcher.definition,
  description: "Finds out what the documentation of this project says about a question.",
  tools: { toolIds: ["search_docs"] },
  examples: ["Search the docs for crash recovery", "How do I add a tool?"],
});

export const demoLibrary = defineLibrary("demo", {
  personas: [assistant, developer, docsResearcher],
  tools: [calculator, dates, defineDocsSearch(docsIndex), notes],
});
