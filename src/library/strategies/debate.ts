/** The strategy `debate`: two sides argue in parallel, round by round, and a judge decides. */
import { z } from "zod";
import { defineTool } from "../define/define.ts";
import { definePrompt } from "../define/define-task.ts";
import { defineWorkflow, node, transition } from "../define/define-workflow.ts";
import { dataSchemaOf } from "../definitions/json-schema-of.ts";
import { askModel } from "./ask-model.ts";

const MAX_ROUNDS = 5;

const argument = z.object({ side: z.enum(["for", "against"]), text: z.string() });
const rounds = z.array(z.array(argument));
const verdict = z.object({ winner: z.enum(["for", "against", "draw"]), reasoning: z.string() });

const SO_FAR = `{% for round in rounds %}
Round {{ forloop.index }}
{% for argument in round %}
[{{ argument.side }}] {{ argument.text }}
{% endfor %}{% endfor %}`;

const arguePrompt = definePrompt("debate_argue", {
  systemPrompt:
    "You take one side in a debate and argue it as well as it can be argued honestly. Give reasons and facts, and answer the strongest point of the other side. Do not repeat yourself. Write at most 200 words, and nothing but your argument.",
  template: `The question: {{ topic }}
Your side: {{ side }}
{% if rounds.size > 0 %}
The debate so far:
${SO_FAR}
{% endif %}
Give your argument {{ side }} it.`,
});

const judgePrompt = definePrompt("debate_judge", {
  systemPrompt:
    "You judge a debate by its arguments alone: the reasons and facts that were given, and whether they were answered. Your own opinion of the question does not count. Say `draw` if neither side is clearly better.",
  template: `The question: {{ topic }}
${SO_FAR}
Which side has the better arguments? Give the winner, and your reasoning in a few sentences.`,
  produces: dataSchemaOf("The verdict of a debate", verdict),
});

const argue = askModel({
  id: "debate_argue",
  description: "Writes the argument of one side in one round of a debate.",
  input: z.object({ topic: z.string(), side: z.string(), rounds }),
  output: argument,
  prompt: arguePrompt,
  outputMapping: { "output.side": "input.side", "output.text": "result.response" },
});

const judge = askModel({
  id: "debate_judge",
  description: "Decides who has won a debate.",
  input: z.object({ topic: z.string(), rounds }),
  output: verdict,
  prompt: judgePrompt,
  outputMapping: {
    "output.winner": "result.response.winner",
    "output.reasoning": "result.response.reasoning",
  },
});

/**
 * The workflow `debate`. In each round, both sides see only the previous rounds. Their new arguments are hidden from
 * each other.
 */
export const debate = defineWorkflow("debate", {
  description: "Two sides argue a question in parallel for some rounds, and a judge decides.",
  input: z.object({
    topic: z.string().min(1).describe("The question, as one that can be answered by yes or no."),
    rounds: z.int().min(1).max(MAX_ROUNDS).default(2).describe("How often both sides argue."),
  }),
  output: verdict.extend({ rounds }),
  context: z.object({
    latest: z.array(argument).default([]),
    rounds: rounds.default([]),
    verdict: verdict.optional(),
  }),
  initialNode: "open",
  nodes: [
    node("open"),
    node("argue", {
      task: argue,
      inputMapping: { topic: "input.topic", side: "side", rounds: "state.rounds" },
      outputMapping: { "output.argument": "result" },
    }),
    node("close", { outputMapping: { "state.rounds": "state.rounds + [state.latest]" } }),
    node("judge", {
      task: judge,
      inputMapping: { topic: "input.topic", rounds: "state.rounds" },
      outputMapping: { "state.verdict": "result" },
    }),
  ],
  transitions: [
    transition({
      from: "open",
      to: "argue",
      siblingGroup: "sides",
      foreach: { collection: "['for', 'against']", itemVar: "side" },
    }),
    transition({
      from: "argue",
      to: "close",
      synchronization: {
        siblingGroup: "sides",
        strategy: "all",
        maxFailures: 0,
        merge: { source: "_branch.output.argument", target: "state.latest", strategy: "collect" },
      },
    }),
    transition({
      from: "close",
      to: "open",
      condition: "size(state.rounds) < input.rounds",
      loopConfig: { maxIterations: MAX_ROUNDS - 1 },
    }),
    transition({ from: "close", to: "judge", priority: 1 }),
  ],
  outputMapping: {
    winner: "state.verdict.winner",
    reasoning: "state.verdict.reasoning",
    rounds: "state.rounds",
  },
});

export const debateTool = defineTool({
  name: "debate",
  description:
    "Has two sides argue a question that can be answered by yes or no, and a judge decide by their arguments. Use it where good reasons speak for both answers. Gives the winner, the reasoning, and all arguments.",
  target: { workflow: debate },
});
