/**
 * An application with an agent that works on code, under a policy. A header makes its sender a member, or gives other roles; other
 * senders are the local administrator.
 */
import { z } from "zod";
import { dramatis } from "../../../src/dramatis.ts";
import { localAuthorize } from "../../../src/http/auth/authorize.ts";
import { defineLibrary, definePersona, defineTool } from "../../../src/library/define/define.ts";
import { defineTask } from "../../../src/library/define/define-task.ts";
import { defineWorkflow, node } from "../../../src/library/define/define-workflow.ts";
import { step } from "../../../src/library/tasks/step.ts";
import { ROLES } from "../../../src/shared/roles.ts";

const developer = definePersona("developer", {
  name: "Developer",
  identity: { systemPrompt: "You work on the code of the project." },
  tools: {
    toolIds: [
      ...["tree", "read", "write", "edit", "search", "diff", "commit"].map((name) => `dramatis/repo_${name}`),
      ...["exec", "start", "output", "stop"].map((name) => `dramatis/shell_${name}`),
      "ask_tester",
    ],
  },
});

const dreamer = definePersona("dreamer", {
  name: "Dreamer",
  identity: { systemPrompt: "You have no project." },
});

const askTester = defineTool({
  name: "ask_tester",
  description: "Has the tester do something on a branch of its own.",
  target: { agent: "tester", mode: "delegate" },
});

const tester = definePersona("tester", {
  name: "Tester",
  identity: { systemPrompt: "You test." },
  tools: { toolIds: ["dramatis/repo_write"] },
});

/** Writes a file of the run. */
const note = defineTask({
  id: "note",
  input: z.object({}),
  steps: [
    step("write", {
      action: { kind: "repo.write" },
      inputMapping: { path: "'notes/run.md'", content: "'Of the run.'" },
    }),
  ],
});

const notes = defineWorkflow("notes", {
  input: z.object({}),
  initialNode: "note",
  nodes: [node("note", { task: note })],
  transitions: [],
});

const app = dramatis({
  libraries: [
    defineLibrary("code", {
      ...{ personas: [developer, dreamer, tester], tools: [askTester] },
      ...{ tasks: [note], workflows: [notes] },
    }),
  ],
  artifactTypes: [{ id: "decision", pathPattern: "decisions/*.md" }],
  agents: [
    { id: "developer", persona: "code/developer", projectIds: ["shop"] },
    { id: "tester", persona: "code/tester", projectIds: ["shop"] },
    { id: "dreamer", persona: "code/dreamer", projectIds: ["clouds"] },
  ],
  policy: [
    { id: "no-search", tools: ["repo_search"], then: "deny", reason: "Search is switched off here." },
    {
      ...{ id: "ask-before-commit", tools: ["repo_commit"], tainted: true, then: "ask" },
      reason: "A person reads the changes first.",
    },
  ],
  authorize: async (request, env) => {
    const subject = request.headers.get("x-member");
    if (subject === null) return localAuthorize(request, env);
    const given = request.headers.get("x-roles")?.split(" ") ?? [];
    const roles = ROLES.filter((role) => given.includes(role));
    return { subject, tenant: "local", roles: roles.length === 0 ? ["member"] : roles };
  },
});

export const { Conversation, Agent, Coordinator, Trigger, EventLog, Workspace, Executor } = app;
export default app.handler;
