/** The properties of every run. */

export interface Violation {
  property: Property;
  detail: string;
}

/** All properties, each in one sentence. */
export const PROPERTIES = {
  incident: "A run has no incident: no unplanned error, no refusal, and it ends.",
  once: "An acknowledged message is recorded exactly once, any other at most once, unchanged.",
  replaced:
    "An acknowledged replacement is one turn, however often its request came. The replaced turn stays as it was. A regenerated turn takes over the calls, and runs none of them again.",
  forked:
    "An acknowledged fork exists once. It has the history of its source up to the end of the turn, a new budget, and a future of its own: it runs nothing of its history again, and neither conversation gets turns of the other. A fork that does not exist leaves nothing.",
  erased:
    "After an acknowledged erasure no table, no record in the directory and no log of events has the text.",
  order: "Messages that a user sent one after the other are recorded in that order.",
  ids: "Ids are unique over conversations: a key of a tool belongs to one operation.",
  ends: "Every turn ends exactly once. At the end, no turn is active, no message is pending, and no wake-up is armed.",
  failure: "A turn fails only for a planned reason.",
  journal:
    "Journal numbers are gapless and ascending. Each start has an end. The journal of a turn has the entries that name it.",
  memory: "The actor's state in memory equals the state in its database.",
  "tool attempts":
    "Only a call of a `pure` or `idempotent` tool is retried, after a temporary failure, within the tool's attempts and after its pauses.",
  "tool runs":
    "A `once` tool runs at most once. Other tools run again only under the same operation id, and only after a fault.",
  cycles:
    "A turn continues when a background operation has a result, completes after the last result, and keeps the order of turns.",
  results: "A result in the transcript is the tool's answer, its failure, or an unknown outcome.",
  "model calls": "The model is called again only after a fault or a failure.",
  attempts: "A model gets at most three attempts for a message, each after its pause.",
  recoveries: "A turn is resumed at most ten times without an outcome in between.",
  fallbacks: "The next model of a chain is called only after the previous model has failed permanently.",
  calls:
    "Every request that a provider received is an attempt of exactly one recorded call, except requests that a crash cut off.",
  usage:
    "The providers' counts are counted once: in the turn, in the conversation's totals, and in the directory.",
  records: "The directory ends with the newest state of each turn.",
  hooks:
    "A turn of an agent with a context hook calls no model before the hook's request. A `once` hook runs once. A completed turn is finalized once, with the result of its extraction.",
  budget: "The ledger has every request and every tool call, and both stay within the budget.",
  stops:
    "An acknowledged stop holds, also after a crash. A turn is CANCELLED only by a stop or an interruption, and the journal names the caller.",
  stopped:
    "While a conversation is stopped, no turn is active, no model is called, and the turn of a new message fails with CANCELLED. After its end, no turn starts.",
  over: "Only an active turn calls a model or starts an operation. A stop aborts its running work, once.",
  queue:
    "Queued turns begin in the order of their messages, as soon as no other turn works. A turn that waits for its client does not block the queue.",
  queued:
    "Messages of a batch begin in their order. A queued message starts its turn, or the end of the conversation refuses it with an entry that names it.",
  interrupt: "If messages interrupt, a turn begins at once, and alone.",
  newer:
    "A call that must run at most once is made only in reply to a request with all of its user's messages so far.",
  session: "A session holds complete turns only, in the order of their ends.",
  waits: "Every active turn works, names an operation or a deadline, or waits for a turn that does.",
  titles:
    "The first completed turn with an answer begins the only call for a title, in its commit. The call asks a model at most three times, ends by a stop or a new title, and its reply is the title.",
  compactions:
    "A compaction begins when the history fills its budget, covers complete turns, calls a model at most three times, and has the model's summary.",
  context:
    "A request has the turns that ended before its cycle, in order, the notes on active turns, its own moves so far, and every image or a note that it is missing.",
  data: "A turn that demands data completes with a valid answer, or fails after the allowed number of attempts.",
  "client results":
    "A call of a client's tool has a result that a client sent, the acknowledged result if there is any, or was left unanswered.",
  approvals:
    "A call that needs an approval runs only after a person who saw it approved it. One answer counts, an acknowledged answer is recorded, and a denied call fails with APPROVAL_DENIED.",
  text: "An answer equals, to the letter, the model's text in one of its calls.",
  frames:
    "On each connection every durable frame arrives once, in order, and text arrives without gap or repetition.",
  views: "Every client that reconnects sees the server's records, on any path.",
  prompts: "A rebuilt request equals the request that the provider received, unless it names a missing part.",
  replays: "Every turn that is over replays from its recording, without a call and without a divergence.",
  "tool state": "An acknowledged note is kept.",
} as const;
export type Property = keyof typeof PROPERTIES;
