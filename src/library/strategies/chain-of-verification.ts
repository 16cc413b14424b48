/** The strategy `chain_of_verification`: a draft is checked by questions that are answered without it, and then revised. */
import { z } from "zod";
import { defineTool } from "../define/define.ts";
import { definePrompt } from "../define/define-task.ts";
import { defineWorkflow, node, transition } from "../define/define-workflow.ts";
import { dataSchemaOf } from "../definitions/json-schema-of.ts";
import { askModel } from "./ask-model.ts";

/** Questions that check a draft at most. */
const MAX_QUESTIONS = 8;

const check = z.object({ question: z.string(), answer: z.string() });
const checks = z.array(check);
const plan = z.object({ questions: z.array(z.string()).max(MAX_QUESTIONS) });

const draftPrompt = definePrompt("verification_draft", {
  systemPrompt: "You answer questions directly and factually.",
  template: "{{ question }}",
});

const planPrompt = definePrompt("verification_plan", {
  systemPrompt:
    "You plan how to check an answer. You write questions about single facts that the answer claims. Each can be answered by somebody who has seen neither the answer nor your other questions.",
  template: `The question: {{ question }}

The answer to check:
{{ draft }}

Write at most {{ most }} questions that check its facts: the claims that would matter most if they were wrong first. Write none if it claims no facts.`,
  produces: dataSchemaOf("The plan of a verification", plan),
});

const verifyPrompt = definePrompt("verification_verify", {
  systemPrompt:
    "You answer a question about a fact, briefly and exactly. Say that you do not know where you are not sure: a guess does harm.",
  template: "{{ question }}",
});

const revisePrompt = definePrompt("verification_revise", {
  systemPrompt:
    "You correct an answer by checks of its facts. Where a check contradicts the answer, the check counts. Leave out what a check could not confirm, or say that it is uncertain. Write nothing but the corrected answer.",
  template: `The question: {{ question }}

The answer so far:
{{ draft }}

The checks:
{% for one in checks %}
Q: {{ one.question }}
A: {{ one.answer }}
{% endfor %}
Write the corrected answer.`,
});

const draft = askModel({
  id: "verification_draft",
  description: "Answers a question without checks.",
  input: z.object({ question: z.string() }),
  output: z.object({ text: z.string() }),
  prompt: draftPrompt,
  outputMapping: { "output.text": "result.response" },
});

const planTask = askModel({
  id: "verification_plan",
  description: "Writes questions that check the facts of an answer.",
  input: z.object({ question: z.string(), draft: z.string(), most: z.int() }),
  output: plan,
  prompt: planPrompt,
  outputMapping: { "output.questions": "result.response.questions" },
});

const verify = askModel({
  id: "verification_verify",
  description: "Answers one question that checks a fact.",
  input: z.object({ question: z.string() }),
  output: check,
  prompt: verifyPrompt,
  outputMapping: { "output.question": "input.question", "output.answer": "result.response" },
});

const revise = askModel({
  id: "verification_revise",
  description: "Corrects an answer by checks of its facts.",
  input: z.object({ question: z.string(), draft: z.string(), checks }),
  output: z.object({ text: z.string() }),
  prompt: revisePrompt,
  outputMapping: { "output.text": "result.response" },
});

/** The workflow `chain_of_verification`. A check that fails is left out; a draft without checks is the answer. */
export const chainOfVerification = defineWorkflow("chain_of_verification", {
  description: "Answers a question, checks the facts of the answer one by one without it, and corrects it.",
  input: z.object({
    question: z.string().min(1),
    checks: z.int().min(1).max(MAX_QUESTIONS).default(4).describe("Facts to check at most."),
  }),
  output: z.object({ answer: z.string(), draft: z.string(), checks }),
  context: z.object({
    draft: z.string().default(""),
    questions: z.array(z.string()).default([]),
    checks: checks.default([]),
    answer: z.string().default(""),
  }),
  initialNode: "draft",
  nodes: [
    node("draft", {
      task: draft,
      inputMapping: { question: "input.question" },
      outputMapping: { "state.draft": "result.text", "state.answer": "result.text" },
    }),
    node("plan", {
      task: planTask,
      inputMapping: { question: "input.question", draft: "state.draft", most: "input.checks" },
      outputMapping: { "state.questions": "result.questions" },
    }),
    node("verify", {
      task: verify,
      inputMapping: { question: "question" },
      outputMapping: { "output.check": "result" },
    }),
    node("checked"),
    node("revise", {
      task: revise,
      inputMapping: { question: "input.question", draft: "state.draft", checks: "state.checks" },
      outputMapping: { "state.answer": "result.text" },
    }),
  ],
  transitions: [
    transition({ from: "draft", to: "plan" }),
    transition({
      from: "plan",
      to: "verify",
      siblingGroup: "checks",
      foreach: { collection: "state.questions", itemVar: "question" },
    }),
    transition({
      from: "verify",
      to: "checked",
      synchronization: {
        siblingGroup: "checks",
        strategy: "all",
        merge: { source: "_branch.output.check", target: "state.checks", strategy: "collect" },
      },
    }),
    transition({ from: "checked", to: "revise", condition: "size(state.checks) > 0" }),
  ],
  outputMapping: { answer: "state.answer", draft: "state.draft", checks: "state.checks" },
});

export const chainOfVerificationTool = defineTool({
  name: "chain_of_verification",
  description:
    "Answers a question of facts, checks the facts of the answer one by one, and corrects it. Use it where a wrong fact would do harm. Gives the answer, the first draft, and the checks.",
  target: { workflow: chainOfVerification },
});
