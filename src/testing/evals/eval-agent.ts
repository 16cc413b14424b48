/**
 * The usual `run` of an eval: an agent of an application answers each case.
 *
 * EVALAGENT-1  A turn that failed, or that waits for people or a late result, fails its case with the reason.
 * EVALAGENT-2  A recording answers only for the agent that it names.
 */
import { type TestAppOptions, worldParts } from "../app-options.ts";
import { expectReplay } from "../replay.ts";
import { TestApp } from "../test-app.ts";
import { TestWorld, type WorldParts } from "../world/test-world.ts";
import { CallNeeded, type EvalCase, type EvalContext, type EvalRun } from "./eval.ts";
import { RecordedCalls, repliesIn } from "./recorded-turn.ts";

/**
 * Returns a run that sends the input of a case to an agent, in a conversation of its own. A case with `replies` or a `recording` calls no model.
 * A recording also gives the results of its tools. Other cases use recorded replies, or the models of the agent.
 */
export function evalAgent(options: TestAppOptions, agent: string): EvalRun {
  return async (one, context) => {
    const recordedBy = one.recording?.turn.agentId ?? agent;
    if (recordedBy !== agent)
      throw new Error(
        `The recording is of the agent "${recordedBy}", not of "${agent}". Name an agent with this id in \`agents\`.`,
      );
    const needs: string[] = [];
    const world = new TestWorld(partsOf(options, one, context, (problem) => needs.push(problem)));
    const app = new TestApp(world);
    try {
      app.model.script(...(one.recording ? repliesIn(one.recording) : (one.replies ?? [])));
      const input = typeof one.input === "string" ? one.input : JSON.stringify(one.input);
      const turn = await app.send(agent, input).catch((error: unknown) => {
        const [missing = app.model.missing.length > 0 ? TOO_FEW : undefined] = needs;
        throw missing === undefined ? error : new CallNeeded(missing);
      });
      const [need] = needs;
      if (need !== undefined) throw new CallNeeded(need);
      const { status, text, output, calls, error } = turn;
      if (status === "waiting") throw new Error(`The turn does not end: it waits for ${waitedFor(app)}.`);
      if (error !== undefined) throw new Error(`${error.code}: ${error.message}`);
      return { text, calls, ...(output !== undefined && { output }) };
    } finally {
      app.close();
    }
  };
}

const TOO_FEW = "The case has too few replies. Add a reply, or remove them and use --live.";

function waitedFor(app: TestApp): string {
  const [call] = app.approvals();
  return call === undefined ? "a deferred result" : `a decision about "${call.name}"`;
}

function partsOf(
  options: TestAppOptions,
  { replies, recording }: EvalCase,
  { gateway, defaultProfile }: EvalContext,
  onMissing: (problem: string) => void,
): WorldParts {
  const parts = worldParts(options);
  if (recording !== undefined) {
    expectReplay(recording);
    return { ...parts, recorded: new RecordedCalls(recording, onMissing) };
  }
  return replies === undefined ? { ...parts, gateway, defaultProfile } : parts;
}
