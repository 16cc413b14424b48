/** Checks the hooks of a conversation. Pure. */
import type { Scope } from "./scope.ts";

export function checkHooks({ history, outcome, conversation, fail }: Scope): void {
  const hooks = history.plan.conversations[conversation]?.hooks ?? {};
  const runs = history.hookRuns.filter((run) => run.conversation === conversation);
  for (const kind of ["assembly", "extraction"] as const) {
    const own = runs.filter((run) => run.kind === kind);
    if (hooks[kind] === undefined && own.length > 0) fail("hooks", `An ${kind} runs without a hook.`);
    for (const [id, ofOperation] of Map.groupBy(own, ({ operationId }) => operationId)) {
      if (hooks[kind]?.effect === "once" && ofOperation.length > 1)
        fail("hooks", `The \`once\` hook ${id} ran ${ofOperation.length} times.`);
    }
  }
  for (const turn of outcome.turns) {
    const entries = outcome.journal.filter(({ turnId }) => turnId === turn.id);
    const placesOf = (type: string) => entries.flatMap((entry) => (entry.type === type ? [entry.seq] : []));
    const [assembled, called] = [placesOf("context_assembly.completed"), placesOf("message.started")];
    const [first = Number.POSITIVE_INFINITY] = assembled;
    if (hooks.assembly !== undefined && called.some((seq) => seq < first))
      fail("hooks", `${turn.id} called a model before its context hook gave the request.`);
    const ends = placesOf("turn.finalized").length;
    if (ends !== (turn.status === "completed" ? 1 : 0))
      fail("hooks", `${turn.id} was finalized ${ends} times.`);
    const begun = placesOf("memory_extraction.started").length;
    if (begun !== (hooks.extraction !== undefined && turn.status === "completed" ? 1 : 0))
      fail("hooks", `${turn.id} has ${begun} extractions.`);
    const hasFailed = turn.issues?.memoryExtractionFailed === true;
    // An extraction that failed may begin once more later.
    const mayEndLater = hasFailed && placesOf("memory_extraction.resumed").length > 0;
    const completed = placesOf("memory_extraction.completed").length;
    if (begun === 1 && completed !== (hasFailed ? 0 : 1) && !(mayEndLater && completed === 1))
      fail("hooks", `The extraction of ${turn.id} ended otherwise than the turn says.`);
  }
}
