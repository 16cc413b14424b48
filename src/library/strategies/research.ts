/** The strategy `research`: a question is split into sub-questions, which are answered in parallel, judged, and put together. */
import { z } from "zod";
import { defineTool } from "../define/define.ts";
import { definePrompt, defineTask } from "../define/define-task.ts";
import { defineWorkflow, node, transition } from "../define/define-workflow.ts";
import { dataSchemaOf } from "../definitions/json-schema-of.ts";
import { askModel } from "./ask-model.ts";

/** Sub-questions of a question at most. */
const MAX_ANGLES = 8;

const plan = z.object({ questions: z.array(z.string()).min(1).max(MAX_ANGLES) });
/** The answer to one sub-question. `basis` names its sources. */
const found = z.object({ finding: z.string(), basis: z.string() });
const candidate = found.extend({ question: z.string() });
const candidates = z.array(candidate);
const verdict = z.object({
  number: z.int().min(1),
  verdict: z.enum(["keep", "weak", "drop"]),
  reason: z.string(),
});
const verdicts = z.array(verdict);
/** A finding of the answer; `weak` if the judge doubts it or did not judge it. */
const finding = candidate.extend({ weak: z.boolean() });
const findings = z.array(finding);
const dropped = z.array(candidate.extend({ reason: z.string() }));

const FOUND = `{% for one in findings %}
[{{ forloop.index }}]{% if one.weak %} (weak){% endif %} {{ one.question }}
{{ one.finding }}
Rests on: {{ one.basis }}
{% endfor %}`;

const planPrompt = definePrompt("research_plan", {
  systemPrompt:
    "You plan the research of a question. You split it into sub-questions about different angles. Each can be answered by somebody who has seen neither the question nor the other sub-questions.",
  template: `The question: {{ question }}

Write at most {{ most }} sub-questions, those that the answer depends on most first.`,
  produces: dataSchemaOf("The plan of a research", plan),
});

const findPrompt = definePrompt("research_find", {
  systemPrompt:
    "You answer one question of a research, in at most 150 words. Say in `basis` what your finding rests on: a source that you can name, a calculation, common knowledge or a conclusion of your own. Never invent a source. If you do not know, say so.",
  template: "{{ question }}",
  produces: dataSchemaOf("A finding", found),
});

const judgePrompt = definePrompt("research_judge", {
  systemPrompt:
    "You judge the findings of a research before they are used. `keep` what answers its question and rests on something solid. Mark as `weak` what is plausible, but rests on little. `drop` what is wrong, does not answer its question, rests on nothing, or is contradicted by a better finding.",
  template: `The question of the research: {{ question }}

The findings:
${FOUND}
Judge each of them by its number, with a reason of one sentence.`,
  produces: dataSchemaOf("The verdicts on findings", z.object({ verdicts })),
});

const synthesisPrompt = definePrompt("research_synthesis", {
  systemPrompt:
    "You answer a question by the findings of a research, and by nothing else. Put the numbers of the findings that a statement rests on behind it, as in [2]. Say where a statement rests on weak findings only, and what the findings leave open. Write nothing but the answer.",
  template: `The question: {{ question }}

The findings:
{% if findings.size == 0 %}
None has held. Say that the research has found no answer, and what would have to be found out.
{% endif %}${FOUND}
Write the answer.`,
});

const planTask = askModel({
  id: "research_plan",
  description: "Splits a question into sub-questions.",
  input: z.object({ question: z.string(), most: z.int() }),
  output: plan,
  prompt: planPrompt,
  outputMapping: { "output.questions": "slice(result.response.questions, 0, input.most)" },
});

const find = askModel({
  id: "research_find",
  description: "Answers one sub-question, and says what the answer rests on.",
  input: z.object({ question: z.string() }),
  output: candidate,
  prompt: findPrompt,
  outputMapping: {
    "output.question": "input.question",
    "output.finding": "result.response.finding",
    "output.basis": "result.response.basis",
  },
});

const judge = askModel({
  id: "research_judge",
  description: "Judges the findings of a research.",
  input: z.object({ question: z.string(), findings: candidates }),
  output: z.object({ verdicts }),
  prompt: judgePrompt,
  outputMapping: { "output.verdicts": "result.response.verdicts" },
});

const sift = defineTask({
  id: "research_sift",
  description: "Parts findings by the verdicts on them. One without a verdict is weak.",
  input: z.object({ findings: candidates, verdicts }),
  output: z.object({ findings, dropped }),
  effect: "pure",
  execute: (given) => {
    const judged = given.findings.map((one, index) => ({
      one,
      verdict: given.verdicts.find(({ number }) => number === index + 1),
    }));
    return {
      findings: judged.flatMap(({ one, verdict }) =>
        verdict?.verdict === "drop" ? [] : [{ ...one, weak: verdict?.verdict !== "keep" }],
      ),
      dropped: judged.flatMap(({ one, verdict }) =>
        verdict?.verdict === "drop" ? [{ ...one, reason: verdict.reason }] : [],
      ),
    };
  },
});

const synthesise = askModel({
  id: "research_synthesis",
  description: "Answers a question by the findings of a research.",
  input: z.object({ question: z.string(), findings }),
  output: z.object({ text: z.string() }),
  prompt: synthesisPrompt,
  outputMapping: { "output.text": "result.response" },
});

/** The workflow `research`. A failed sub-question is dropped. If all sub-questions fail, the run fails. */
export const research = defineWorkflow("research", {
  description:
    "Splits a question into sub-questions, answers each by its own call, judges the findings, and answers by those that hold.",
  input: z.object({
    question: z.string().min(1),
    angles: z.int().min(1).max(MAX_ANGLES).default(4).describe("Sub-questions at most."),
  }),
  output: z.object({ answer: z.string(), findings, dropped }),
  context: z.object({
    questions: z.array(z.string()).default([]),
    found: candidates.default([]),
    verdicts: verdicts.default([]),
    findings: findings.default([]),
    dropped: dropped.default([]),
    answer: z.string().default(""),
  }),
  initialNode: "plan",
  nodes: [
    node("plan", {
      task: planTask,
      inputMapping: { question: "input.question", most: "input.angles" },
      outputMapping: { "state.questions": "result.questions" },
    }),
    node("find", {
      task: find,
      inputMapping: { question: "question" },
      outputMapping: { "output.found": "result" },
    }),
    node("judge", {
      task: judge,
      inputMapping: { question: "input.question", findings: "state.found" },
      outputMapping: { "state.verdicts": "result.verdicts" },
    }),
    node("sift", {
      task: sift,
      inputMapping: { findings: "state.found", verdicts: "state.verdicts" },
      outputMapping: { "state.findings": "result.findings", "state.dropped": "result.dropped" },
    }),
    node("synthesise", {
      task: synthesise,
      inputMapping: { question: "input.question", findings: "state.findings" },
      outputMapping: { "state.answer": "result.text" },
    }),
  ],
  transitions: [
    transition({
      from: "plan",
      to: "find",
      siblingGroup: "angles",
      foreach: { collection: "state.questions", itemVar: "question" },
    }),
    transition({
      from: "find",
      to: "judge",
      synchronization: {
        siblingGroup: "angles",
        strategy: "all",
        merge: { source: "_branch.output.found", target: "state.found", strategy: "collect" },
      },
    }),
    transition({ from: "judge", to: "sift" }),
    transition({ from: "sift", to: "synthesise" }),
  ],
  outputMapping: { answer: "state.answer", findings: "state.findings", dropped: "state.dropped" },
});

export const researchTool = defineTool({
  name: "research",
  description:
    "Researches a question with several sides: answers its sub-questions in parallel, drops findings that do not hold, and puts the others together. Gives the answer, which names the findings that it rests on by number, the findings, and those that were dropped.",
  target: { workflow: research },
});
