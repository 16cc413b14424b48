/** The compared variants: without a hook, with a task, and with a workflow of this task. */

export const VARIANTS = ["none", "task", "workflow"] as const;

export type Variant = (typeof VARIANTS)[number];

/** The message of every turn, about 200 characters. */
export const TEXT =
  "Please remind me which of the harbour lights are lit before dusk, which ones wait for the keeper, and what " +
  "the log of last week says about the lamp on the northern pier that went out in the middle of a storm.";
