/** Public surface of `dramatis/testing`: test apps, simulations, and replays of recorded turns. */

export type { Library } from "../library/define/define.ts";
export type { Gate } from "../policy/gate.ts";
export type { Budget } from "../protocol/budget.ts";
export type { TurnOrder, TurnView } from "../protocol/conversation-schemas.ts";
export type { PersonaSource } from "../protocol/definitions.ts";
export type { TurnRecording, TurnReplay } from "../protocol/recording.ts";
export type { ToolOutcome } from "../protocol/requests.ts";
export type { RunView } from "../protocol/run-schemas.ts";
export type { Json, JsonObject, JsonValue } from "../shared/json.ts";
export type { TestAgent, TestAppOptions } from "./app-options.ts";
export { fromJsonl, fromRecordings } from "./evals/data.ts";
export {
  CallNeeded,
  defineEval,
  type Eval,
  type EvalCase,
  type EvalContext,
  type EvalOptions,
  type EvalOutput,
  type EvalRun,
  type Score,
  type Scorer,
} from "./evals/eval.ts";
export { evalAgent } from "./evals/eval-agent.ts";
export { type EvalFilesOptions, type EvalReport, evalFiles } from "./evals/eval-files.ts";
export type { CaseResult, EvalResult } from "./evals/run-evals.ts";
export { contains, exact, json, judge, type ModelJudge, toolOrder } from "./evals/scorers.ts";
export type { FaultKind, FaultPort, PlannedFault } from "./faults.ts";
export {
  call,
  type ModelAnswer,
  type ModelStep,
  reply,
  type ScriptedMessage,
  type ScriptedModel,
  type ScriptedReply,
  type ScriptedRequest,
} from "./model-script.ts";
export { expectReplay, ReplayDivergence, replayRecording } from "./replay.ts";
export { type SimulateOptions, SimulationFailure, type SimulationReport, simulate } from "./simulate.ts";
export {
  createTestApp,
  type PendingApproval,
  type TestApp,
  type TestClock,
  type TestConversation,
  type TestConversationOptions,
  type TestMessage,
} from "./test-app.ts";
export type { TestCall, TestTurn } from "./test-turn.ts";
export type { HttpAnswer } from "./world/scripted-http.ts";
export type { McpDoubles, RemoteAnswer, RemoteMessage } from "./world/scripted-servers.ts";
export type { ToolRun } from "./world/tool-runs.ts";
