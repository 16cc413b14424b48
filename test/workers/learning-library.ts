/** Personas with conversations that learn. */
import { z } from "zod";
import { defineLibrary, definePersona } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";

/** Applies the operations in the message, as JSON. `$0` is the id of the first memory in the input. */
const obey = defineTask({
  id: "obey",
  input: z.looseObject({
    user_text: z.string(),
    memories: z.array(z.looseObject({ id: z.string(), content: z.string() })).optional(),
  }),
  effect: "pure",
  execute: ({ user_text, memories = [] }) => {
    const [, operations = "[]"] = user_text.split("LEARN:");
    const offered = memories.map(({ content }) => content).join(" | ");
    const text = operations.replaceAll("$0", memories[0]?.id ?? "none").replaceAll("$OFFERED", offered);
    return z.array(z.json()).parse(JSON.parse(text));
  },
});

/** A context hook that shows the model only its memories and the message. */
const remind = defineTask({
  id: "remind",
  input: z.looseObject({ user_message: z.string(), memories: z.array(z.json()) }),
  output: z.looseObject({ messages: z.array(z.json()) }),
  effect: "pure",
  execute: ({ user_message, memories }) => ({
    model: "scripted",
    stream: true,
    messages: [
      { role: "system", content: JSON.stringify(memories) },
      { role: "user", content: user_message },
    ],
  }),
});

const persona = (id: string, memory: object) =>
  definePersona(id, {
    identity: { systemPrompt: "You listen." },
    memory: { scope: "user", recall: false, memoryTools: false, ...memory },
  });

export const learningLibrary = defineLibrary("learning", {
  tasks: [obey, remind],
  personas: [
    persona("obedient", { memoryExtraction: { task: "learning/obey" } }),
    definePersona("listener", {
      identity: { systemPrompt: "You listen." },
      memory: { scope: "user", recall: false, memoryTools: false, extract: true },
    }),
  ],
});
