/**
 * The strategy `tree_of_thought`: proposes next thoughts from the best thoughts in parallel, scores each thought, and
 * continues with the best thoughts.
 */
import { z } from "zod";
import { defineTool } from "../define/define.ts";
import { definePrompt, defineTask } from "../define/define-task.ts";
import { defineWorkflow, node, transition } from "../define/define-workflow.ts";
import { dataSchemaOf } from "../definitions/json-schema-of.ts";
import { askModel } from "./ask-model.ts";

/** Levels of a tree at most. */
const MAX_DEPTH = 4;
/** Next thoughts of one candidate at most. */
const MAX_BREADTH = 5;
/** Candidates that continue to the next level. */
const KEPT = 2;

/** A way from the problem: its thoughts, and the score that each had when it was proposed. */
const candidate = z.object({ thoughts: z.array(z.string()), scores: z.array(z.number()) });
const candidates = z.array(candidate);
const proposals = z.object({ thoughts: z.array(z.string()).min(1) });
const score = z.object({ score: z.number().min(0).max(10) });

const SO_FAR = `{% for thought in thoughts %}
{{ forloop.index }}. {{ thought }}{% endfor %}`;

const proposePrompt = definePrompt("thought_propose", {
  systemPrompt:
    "You propose next steps of thinking about a problem. A step is one idea of a few sentences that brings a solution closer. Your steps differ from each other: each could be right where the others are wrong.",
  template: `The problem: {{ problem }}
{% if thoughts.size > 0 %}
The steps so far:
${SO_FAR}
{% endif %}
Propose {{ breadth }} different steps that could come next.{% if last %} They are the last ones: each should lead to a solution.{% endif %}`,
  produces: dataSchemaOf("The next thoughts", proposals),
});

const scorePrompt = definePrompt("thought_score", {
  systemPrompt:
    "You judge whether a line of thinking will solve a problem. Look for errors in the last step first. Give a score: 10 for one that is correct and leads to a solution, 5 for one that could, 0 for one that is wrong or leads nowhere.",
  template: `The problem: {{ problem }}

The steps:
${SO_FAR}

Give your score of the last step, as a number from 0 to 10.`,
  produces: dataSchemaOf("The score of a thought", score),
});

const answerPrompt = definePrompt("thought_answer", {
  systemPrompt:
    "You solve a problem by the steps of thinking that are given. Correct them where they are wrong. Write the solution and the reasons for it, and nothing about the steps themselves.",
  template: `The problem: {{ problem }}

The steps:
${SO_FAR}

Write the solution.`,
});

const propose = askModel({
  id: "thought_propose",
  description: "Proposes next thoughts about a problem.",
  input: z.object({
    problem: z.string(),
    thoughts: z.array(z.string()),
    breadth: z.int(),
    last: z.boolean(),
  }),
  output: proposals,
  prompt: proposePrompt,
  outputMapping: { "output.thoughts": "slice(result.response.thoughts, 0, input.breadth)" },
});

const judge = askModel({
  id: "thought_score",
  description: "Scores the last of some thoughts about a problem.",
  input: z.object({ problem: z.string(), thoughts: z.array(z.string()) }),
  output: score,
  prompt: scorePrompt,
  outputMapping: { "output.score": "result.response.score" },
});

const select = defineTask({
  id: "thought_select",
  description: "Keeps the candidates whose last thoughts have the highest scores; of equal ones the first.",
  input: z.object({ candidates }),
  output: z.object({ best: candidates }),
  effect: "pure",
  execute: (given) => ({
    best: given.candidates
      .toSorted((one, other) => (other.scores.at(-1) ?? 0) - (one.scores.at(-1) ?? 0))
      .slice(0, KEPT),
  }),
});

const answer = askModel({
  id: "thought_answer",
  description: "Solves a problem by the thoughts that lead to a solution.",
  input: z.object({ problem: z.string(), thoughts: z.array(z.string()) }),
  output: z.object({ text: z.string() }),
  prompt: answerPrompt,
  outputMapping: { "output.text": "result.response" },
});

/**
 * The workflow `tree_of_thought`. A thought is dropped if its proposal or score fails. A level without any thought
 * fails the run.
 */
export const treeOfThought = defineWorkflow("tree_of_thought", {
  description:
    "Solves a problem step by step: next thoughts are proposed in parallel, a judge scores each, and the best continue.",
  input: z.object({
    problem: z.string().min(1),
    breadth: z.int().min(2).max(MAX_BREADTH).default(3).describe("Next thoughts of each candidate."),
    depth: z.int().min(1).max(MAX_DEPTH).default(2).describe("Thoughts that lead to the answer."),
  }),
  output: z.object({ answer: z.string(), path: z.array(z.string()), scores: z.array(z.number()) }),
  context: z.object({
    best: candidates.default([{ thoughts: [], scores: [] }]),
    scored: candidates.default([]),
    answer: z.string().default(""),
  }),
  initialNode: "grow",
  nodes: [
    node("grow"),
    node("propose", {
      task: propose,
      inputMapping: {
        problem: "input.problem",
        thoughts: "candidate.thoughts",
        breadth: "input.breadth",
        last: "size(candidate.thoughts) + 1 == input.depth",
      },
      outputMapping: {
        "output.next":
          "result.thoughts.map(thought, {'thoughts': candidate.thoughts + [thought], 'scores': candidate.scores})",
      },
    }),
    node("score", {
      task: judge,
      inputMapping: { problem: "input.problem", thoughts: "next.thoughts" },
      outputMapping: {
        "output.scored": "{'thoughts': next.thoughts, 'scores': next.scores + [result.score]}",
      },
    }),
    node("scored"),
    node("select", {
      task: select,
      inputMapping: { candidates: "state.scored" },
      outputMapping: { "state.best": "result.best" },
    }),
    node("answer", {
      task: answer,
      inputMapping: { problem: "input.problem", thoughts: "state.best[0].thoughts" },
      outputMapping: { "state.answer": "result.text" },
    }),
  ],
  transitions: [
    transition({
      from: "grow",
      to: "propose",
      siblingGroup: "candidates",
      foreach: { collection: "state.best", itemVar: "candidate" },
    }),
    transition({
      from: "propose",
      to: "score",
      siblingGroup: "thoughts",
      foreach: { collection: "output.next", itemVar: "next" },
    }),
    transition({
      from: "score",
      to: "scored",
      synchronization: {
        siblingGroup: "thoughts",
        strategy: "all",
        merge: { source: "_branch.output.scored", target: "output.scored", strategy: "collect" },
      },
    }),
    transition({
      from: "scored",
      to: "select",
      synchronization: {
        siblingGroup: "candidates",
        strategy: "all",
        merge: { source: "_branch.output.scored", target: "state.scored", strategy: "append" },
      },
    }),
    transition({
      from: "select",
      to: "grow",
      condition: "size(state.best[0].thoughts) < input.depth",
      loopConfig: { maxIterations: MAX_DEPTH - 1 },
    }),
    transition({ from: "select", to: "answer", priority: 1 }),
  ],
  outputMapping: {
    answer: "state.answer",
    path: "state.best[0].thoughts",
    scores: "state.best[0].scores",
  },
});

export const treeOfThoughtTool = defineTool({
  name: "tree_of_thought",
  description:
    "Solves a hard problem by several lines of thinking in parallel: each step is scored, and the best continue. Use it for puzzles, plans and designs where the first idea is often wrong. Gives the answer, the steps that led to it, and their scores from 0 to 10.",
  target: { workflow: treeOfThought },
});
