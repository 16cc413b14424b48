/** The offline model as a manager and as its colleagues, by rules 16 and 17 of `docs/offline-model.md`. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { offlineFormat } from "../../src/adapters/formats/offline/adapter.ts";
import { offlineModel } from "../../src/adapters/formats/offline/model.ts";
import { ReplyAccumulator } from "../../src/adapters/reply.ts";
import * as team from "../../src/library/agents/team.ts";
import { defineTool } from "../../src/library/define/define.ts";
import { callMessage, DECLINE, modelInputSchema } from "../../src/library/tools/agent-tool.ts";
import { outcomeText } from "../../src/memory/session/outcome.ts";
import type { ToolSpec } from "../../src/model/context.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import type { ModelReply } from "../../src/model/reply.ts";
import type { Persona } from "../../src/protocol/definitions.ts";

const specOf = ({ definition }: { definition: (typeof DECLINE)["definition"] }): ToolSpec => ({
  name: definition.name,
  description: definition.description,
  inputSchema: modelInputSchema(definition),
});
const COLLEAGUES = team.library.tools.map(specOf);
const CALLED = [specOf(DECLINE)];

interface Given {
  persona?: Persona;
  tools?: ToolSpec[];
  toolChoice?: "auto" | "none";
}

async function replyTo(messages: ContextMessage[], given: Given = {}): Promise<ModelReply> {
  const { persona = team.manager.definition, tools = COLLEAGUES, toolChoice = "auto" } = given;
  const { systemPrompt, instructions = [] } = persona.identity;
  const body = offlineFormat.buildRequest(
    { provider: "offline", modelId: "offline-1" },
    { systemInstructions: [systemPrompt, ...instructions], messages, tools, toolChoice },
  );
  const decoder = offlineFormat.decoder();
  const reply = new ReplyAccumulator("offline");
  for await (const payload of offlineModel(body)) for (const delta of decoder.push(payload)) reply.add(delta);
  for (const delta of decoder.end()) reply.add(delta);
  const outcome = reply.outcome();
  if (!outcome.ok) throw new Error(outcome.error.message);
  return outcome.reply;
}

const user = (content: string): ContextMessage => ({ role: "user", content });
const callsOf = ({ toolCalls }: ModelReply) => toolCalls.map(({ name, arguments: input }) => [name, input]);
const messageOf = ({ toolCalls }: ModelReply) => String(toolCalls[0]?.arguments.message);

/** The conversation after a reply that called tools, with these results in the order of the calls. */
function answered(messages: ContextMessage[], reply: ModelReply, ...results: unknown[]): ContextMessage[] {
  const { text, toolCalls } = reply;
  return [
    ...messages,
    { role: "assistant", content: text, toolCalls },
    ...toolCalls.map(({ id, name }, index): ContextMessage => {
      const { failed, ...error } = Object(results[index]);
      const content = JSON.stringify(failed === true ? error : results[index]);
      return {
        role: "tool",
        content,
        toolCallId: id,
        name,
        ...(failed === true ? { metadata: { isSuccess: false } } : {}),
      };
    }),
  ];
}

/** A colleague's answer to the only call of a reply. */
async function answerOf(persona: Persona, message: string): Promise<string> {
  return (await replyTo([user(message)], { persona, tools: CALLED })).text;
}

describe("rule 16: a manager asks its colleagues", () => {
  test.each([
    [
      "Ask the researcher about sessions and the reviewer about our tests.",
      [
        ["ask_researcher", { message: "sessions" }],
        ["ask_reviewer", { message: "our tests." }],
      ],
    ],
    [
      "Please ask the architect and the developer about a login page",
      [
        ["ask_architect", { message: "a login page" }],
        ["ask_developer", { message: "a login page" }],
      ],
    ],
    ["Have the developer write a parser", [["ask_developer", { message: "write a parser" }]]],
    ["@developer: sort a list", [["ask_developer", { message: "sort a list" }]]],
    ["I'd like the reviewer to check it", [["ask_reviewer", { message: "check it" }]]],
    ["Tell the developer that the tests fail", [["ask_developer", { message: "the tests fail" }]]],
    ['user "ada": @manager, plan a blog', [["ask_architect", { message: "Plan a blog" }]]],
    ["Review this:\n\nlet x = 1", [["ask_reviewer", { message: "Review this:\n\nlet x = 1" }]]],
    ["Let the reviewer see this", [["ask_reviewer", { message: "see this" }]]],
    ["Plan a to-do list", [["ask_architect", { message: "Plan a to-do list" }]]],
    ["can you review my plan?", [["ask_reviewer", { message: "Review my plan?" }]]],
    ["research and compare databases", [["ask_researcher", { message: "Research databases" }]]],
    [
      "Bring the reviewer into this conversation",
      [["ask_reviewer", { message: "Join us, and say how you can help.", invocationMode: "loop_in" }]],
    ],
    [
      "Invite the developer to talk about tests",
      [["ask_developer", { message: "talk about tests", invocationMode: "loop_in" }]],
    ],
  ])("%s", async (text, calls) => {
    expect(callsOf(await replyTo([user(text)]))).toEqual(calls);
  });

  test("AGENTTOOL-2 a colleague that may not join is called without a mode", async () => {
    const target = { agent: "reviewer", modes: ["delegate" as const] };
    const bound = specOf(defineTool({ name: "ask_reviewer", description: "Asks.", target }));
    const reply = await replyTo([user("Bring the reviewer into this conversation")], { tools: [bound] });
    expect(callsOf(reply)).toEqual([["ask_reviewer", { message: "Join us, and say how you can help." }]]);
  });

  test.each([
    "Write a haiku about autumn",
    "Write me a short poem",
    "What does the reviewer do?",
    "I built a house.",
    "My planner is broken",
  ])("calls no colleague: %s", async (text) => {
    const reply = await replyTo([user(text)]);
    expect(reply.toolCalls).toEqual([]);
    expect(reply.text).toContain(
      'Try "Build me a login page", "Ask the architect and the developer about a login page", "Bring the developer',
    );
  });

  test.each(["Build me a login page", "I need a login page", "plan, build and review a login page"])(
    "one after another, each with the answers before: %s",
    async (text) => {
      let messages = [user(text)];
      const plan = await replyTo(messages);
      expect(callsOf(plan)).toEqual([["ask_architect", { message: "Plan a login page" }]]);
      const planned = await answerOf(team.architect.definition, messageOf(plan));
      messages = answered(messages, plan, planned);

      const build = await replyTo(messages);
      expect(build.toolCalls.map(({ name }) => name)).toEqual(["ask_developer"]);
      expect(messageOf(build)).toMatch(
        /^Build a login page\n\nThe architect says:\nMy plan for "a login page":/,
      );
      const built = await answerOf(team.developer.definition, messageOf(build));
      messages = answered(messages, build, built);

      const review = await replyTo(messages);
      expect(review.toolCalls.map(({ name }) => name)).toEqual(["ask_reviewer"]);
      expect(messageOf(review)).toContain("The developer says:\nI begin");
      const reviewed = await answerOf(team.reviewer.definition, messageOf(review));
      messages = answered(messages, review, reviewed);

      const { text: answer, toolCalls } = await replyTo(messages);
      expect(toolCalls).toEqual([]);
      expect(answer).toMatch(/^Offline model: I asked the architect, the developer and the reviewer\.\n\n/);
      expect(answer).toContain('**Architect**\n\nMy plan for "a login page":');
      expect(answer).toContain('expect(loginPage("an example"))');
      expect(answer).toContain('**Reviewer**\n\nWhat I check in "a login page":');
      expect(answer.match(/Offline model:/g)).toHaveLength(1);
    },
  );

  test("in sequence if the message says it, each with the previous results", async () => {
    const messages = [
      user(
        "Ask the architect to plan a blog, then ask the developer to build it and the reviewer to review it.",
      ),
    ];
    const plan = await replyTo(messages);
    expect(callsOf(plan)).toEqual([["ask_architect", { message: "plan a blog" }]]);
    const said = "\n\nThe architect says:\nThree parts.";
    expect(callsOf(await replyTo(answered(messages, plan, "Three parts.")))).toEqual([
      ["ask_developer", { message: `build a blog${said}` }],
      ["ask_reviewer", { message: `review a blog.${said}` }],
    ]);
  });

  test("lists the failed, the working and the joined colleagues", async () => {
    const messages = [user("Ask the architect, the developer and the reviewer about boats")];
    const reply = await replyTo(messages);
    const declined = { failed: true, code: "AGENT_DECLINED", message: "No boats.", retriable: false };
    const { text } = await replyTo(
      answered(messages, reply, declined, { status: "pending" }, { joined: "reviewer" }),
    );
    expect(text).toBe(
      [
        "Offline model: I asked the architect, the developer and the reviewer.",
        "**Architect** gave no answer: AGENT_DECLINED. No boats.",
        "**Developer** is working on it. I will tell you the answer when it arrives.",
        "**Reviewer** takes part in this conversation now, and answers here.",
      ].join("\n\n"),
    );
  });

  test("lists the present participants in a sentence", async () => {
    const messages = [user("Bring the developer and the reviewer into this conversation")];
    const reply = await replyTo(messages);
    expect(
      (await replyTo(answered(messages, reply, { joined: "developer" }, { joined: "reviewer" }))).text,
    ).toBe("Offline model: the developer and the reviewer take part in this conversation now.");
  });

  test("includes late answers, too", async () => {
    const messages = [user("Ask the developer about boats")];
    const pending = answered(messages, await replyTo(messages), { status: "pending" });
    const later = (name: string, isSuccess: boolean, result: unknown): ContextMessage => ({
      role: "system",
      content: outcomeText({ id: "op_1", name, isSuccess }, JSON.stringify(result)),
    });
    const { text } = await replyTo([
      ...pending,
      { role: "assistant", content: "At work." },
      later("ask_developer", true, "Offline model: a boat."),
      later("ask_reviewer", false, { code: "TIMEOUT", message: "Too late." }),
    ]);
    expect(text).toBe(
      "Offline model: I asked the developer and the reviewer.\n\n**Developer**\n\nA boat.\n\n**Reviewer** gave no answer: TIMEOUT. Too late.",
    );
  });

  test("OFFLINE-2 calls no colleague if tools may not be called, and combines the present results", async () => {
    const messages = [user("Build me a login page")];
    const reply = await replyTo(messages);
    expect((await replyTo(messages, { toolChoice: "none" })).toolCalls).toEqual([]);
    const { text, toolCalls } = await replyTo(answered(messages, reply, "A plan."), { toolChoice: "none" });
    expect(toolCalls).toEqual([]);
    expect(text).toBe("Offline model: I asked the architect.\n\n**Architect**\n\nA plan.");
  });

  test("a command is followed to the letter, and its result reported by rule 6", async () => {
    const messages = [user('!tool ask_developer {"message": "!say Done."}')];
    const reply = await replyTo(messages);
    expect(callsOf(reply)).toEqual([["ask_developer", { message: "!say Done." }]]);
    expect((await replyTo(answered(messages, reply, "Done."))).text).toBe(
      "Offline model: ask_developer answered Done.",
    );
  });

  test.each(team.manager.definition.examples ?? [])(
    "understands an example of the manager: %s",
    async (text) => {
      expect((await replyTo([user(text)])).toolCalls).not.toEqual([]);
    },
  );

  test("a tool with a message that calls no agent is no colleague", async () => {
    const tool = { name: "ask_oracle", description: "", inputSchema: { properties: { message: {} } } };
    expect((await replyTo([user("Ask the oracle about boats")], { tools: [tool] })).toolCalls).toEqual([]);
  });

  test("OFFLINE-5 for any text, a called agent makes no calls, and each colleague is called at most once", async () => {
    const words = [
      "ask",
      "the",
      "architect",
      "developer",
      "reviewer",
      "build",
      "plan",
      "and",
      ",",
      "@",
      "a boat",
    ];
    const anyText = fc.oneof(
      fc.array(fc.constantFrom(...words)).map((list) => list.join(" ")),
      fc.string(),
    );
    await fc.assert(
      fc.asyncProperty(anyText, async (text) => {
        let messages = [user(text)];
        const called = await replyTo(messages, { tools: [...COLLEAGUES, ...CALLED] });
        expect(called.toolCalls).toEqual([]);
        const asked: string[] = [];
        for (
          let reply = await replyTo(messages);
          reply.toolCalls.length > 0;
          reply = await replyTo(messages)
        ) {
          asked.push(...reply.toolCalls.map(({ name }) => name));
          messages = answered(messages, reply, ...reply.toolCalls.map(({ name }) => `By ${name}.`));
        }
        expect(new Set(asked).size).toBe(asked.length);
      }),
    );
  });

  test("a message of a mebibyte is answered", async () => {
    for (const unit of ["ask the ", "and ", "plan, ", "developer ", "ask developer and ", "build it "]) {
      const reply = await replyTo([user(unit.repeat(1_048_576 / unit.length))]);
      expect(reply.toolCalls.length + reply.text.length).toBeGreaterThan(0);
    }
  });
});

describe("rule 17: colleagues answer in their roles", () => {
  test.each([
    [team.architect, 'My plan for "a login page":\n\n1. Goal:'],
    [team.developer, 'I begin "a login page" with a test that fails:\n\n```ts\n'],
    [team.reviewer, 'What I check in "a login page":\n\n- Does it'],
    [team.researcher, 'What I would find out about "a login page":\n\n1. What is known'],
  ])("$0.id", async ({ id, definition: persona }, answer) => {
    expect(await answerOf(persona, "Please build a login page.\n\nThe architect says: no")).toContain(answer);
    expect(await answerOf(persona, "Join us, and say how you can help.")).toMatch(
      new RegExp(`^Offline model: I am the ${id}\\. `),
    );
  });

  test("a looped-in agent answers without the name of the caller, and mentions no agent", async () => {
    const text = 'agent "manager": Review what @developer wrote';
    expect(await answerOf(team.reviewer.definition, text)).toContain('in "what developer wrote":');
  });

  test("a researcher searches the documentation, if it can", async () => {
    const tools = [...CALLED, { name: "search_docs", description: "", inputSchema: {} }];
    const given = { persona: team.researcher.definition, tools };
    const messages = [user("crash recovery")];
    const reply = await replyTo(messages, given);
    expect(callsOf(reply)).toEqual([["search_docs", { query: "crash recovery" }]]);
    const excerpt = "After a crash\n`it` goes on.";
    const results = [{ path: "docs/a.md", title: "A", heading: "Crashes", excerpt }];
    const { text } = await replyTo(answered(messages, reply, { results }), given);
    expect(text).toBe(
      'Offline model: The documentation says about "crash recovery":\n\n- **Crashes** (docs/a.md): After a crash it goes on.',
    );
    expect((await replyTo(answered(messages, reply, { results: [] }), given)).text).toBe(
      'Offline model: the documentation has nothing about "crash recovery".',
    );
    const failure = { failed: true, code: "TIMEOUT", message: "Too slow." };
    expect((await replyTo(answered(messages, reply, failure), given)).text).toBe(
      "Offline model: search_docs failed with TIMEOUT: Too slow.",
    );
  });

  test("any other called agent repeats its task", async () => {
    const persona = { identity: { systemPrompt: "You carry." } };
    expect(await answerOf(persona, "Carry the piano.")).toBe(
      'Offline model: I was asked "Carry the piano". I have no better answer: no language model is connected.',
    );
    const input = callMessage({ what: "the piano", floors: 3 });
    expect(await answerOf(persona, input), "structured input").toContain(
      'I was asked "{"what":"the piano","floors":3}".',
    );
  });
});
