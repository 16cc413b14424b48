/** The properties of every run. */

export interface Violation {
  property: Property;
  detail: string;
}

/** All properties, each in one sentence. */
export const PROPERTIES = {
  incident:
    "Nothing happens that should not happen in any run: unplanned errors, refusals, a run without end.",
  once: "An acknowledged message is recorded exactly once, any other at most once, as it was sent.",
  order: "Messages that a user sent one after the other are recorded in that order.",
  ids: "No two conversations share an id: what tools use as a key belongs to one operation.",
  ends: "Every turn ends exactly once; nothing is left active, pending or armed.",
  failure: "A turn fails only for a reason that was planned.",
  journal:
    "Journal numbers are gapless and ascending; what begins ends, and nothing follows the end of a turn.",
  memory: "What the actor holds in memory equals what it would read from its database.",
  "tool attempts":
    "A call of a `pure` or `idempotent` tool is repeated if its failure may pass, at most as often as the tool declares and after its pauses; no other call is.",
  "tool runs":
    "No `once` tool runs twice; others run again only under the same operation id, and only after a fault.",
  cycles:
    "A turn goes on when a background operation has a result, completes after the last one, and keeps the order of turns.",
  results:
    "A result in the transcript is what the tool answered, or says that it failed or that its outcome is unknown.",
  "model calls": "The model is asked again only where a fault or a failure explains it.",
  attempts: "A model gets at most three attempts for a message, each after the pause that is due.",
  recoveries: "A turn is resumed at most ten times without an outcome in between.",
  fallbacks:
    "The next model of a chain is asked when the one before has failed for good, and never one before it.",
  calls:
    "Every request that a provider saw is an attempt of exactly one recorded call, but for those that a crash cut off.",
  usage:
    "What providers counted counts once: in the turn, in the conversation's totals, and in what the directory was told.",
  hooks:
    "A turn of an agent with a context hook calls no model before the hook has given the request; a `once` hook runs once; a completed turn is finalized once, as its extraction ended.",
  budget: "The ledger has every request and every tool call, and neither exceeds the budget.",
  stops:
    "An acknowledged stop holds, also after a crash; a turn is CANCELLED only by those who stopped or interrupted it, and the journal names them.",
  stopped:
    "While a conversation is stopped no turn is active, no model is asked, and a message gets a turn that has failed with CANCELLED; after its end none gets a turn.",
  over: "For a turn that is over, or has not begun, no model is asked and no operation starts; what runs when it is stopped is aborted, once.",
  queue:
    "Queued turns begin in the order of their messages, when no other works, and then at once; a turn that waits for its client holds nobody.",
  queued:
    "Messages of a batch begin in their order; one that was accepted and waits starts its turn, or is refused after the end of the conversation with an entry that names it.",
  interrupt: "Where messages interrupt, a turn begins at once, and alone.",
  newer:
    "A call that must not run twice is made only in reply to a request with all that its user had said by then.",
  session: "A session holds whole turns only, in the order of their ends.",
  waits: "Every active turn works, names an operation or a deadline, or waits for a turn that does.",
  compactions:
    "A compaction begins where the history fills its budget, covers whole turns, asks a model at most three times, and has the summary that a model gave.",
  context:
    "A request carries the turns that were over before its cycle began, in order, what it may know of those that were active, its own moves so far, and every image, or that it is gone.",
  data: "A turn that demands data completes with an answer that fits, or fails after as many tries as are allowed.",
  "client results":
    "A call of a client's tool has a result that a client gave, and the one that was acknowledged, or was left unanswered.",
  approvals:
    "A call that needs an approval runs only after somebody who saw it approved it; one answer counts, an acknowledged one is recorded, and a call that is not approved fails with APPROVAL_DENIED.",
  text: "An answer is, to the letter, what the model said in one of its calls.",
  frames:
    "On each connection every durable frame comes once, in order, and text arrives without gap or repetition.",
  views: "Every client that comes back sees what the server has recorded, however it got there.",
  "tool state": "A note that was answered for is kept.",
} as const;
export type Property = keyof typeof PROPERTIES;
