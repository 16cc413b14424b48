/** The ends of the turns that a recording left active, oldest first: their status and the last text of the model. */
export const RECORDED_ENDS: Record<string, [status: string, reasoning: string | undefined][]> = {
  created: [],
  completed: [],
  "during-model-call": [["completed", "After all."]],
  "during-backoff": [["completed", "At last."]],
  "during-tools": [["completed", "So be it."]],
  "during-pure-tools": [["completed", "Found."]],
  "several-active": [
    ["completed", "The first."],
    ["completed", "The second."],
    ["completed", "The third."],
  ],
  "after-recoveries": [["completed", "In spite of everything."]],
  "after-too-many-recoveries": [["failed", undefined]],
  "with-long-row": [["completed", "That was long."]],
  "waiting-for-client": [["completed", "That one."]],
  "during-tools-of-both": [["completed", "Both of them."]],
  "several-snapshots": [
    ["completed", "The first."],
    ["completed", "The last."],
  ],
  "queued-turns": [
    ["completed", "The first."],
    ["completed", "The second."],
    ["completed", "The third."],
  ],
  "queued-signals": [["completed", "The first."]],
  "waiting-for-approval": [["completed", "Refund 3 is over."]],
  deferred: [["completed", "Paid."]],
  "during-context-hook": [["completed", "By a hook."]],
  "during-extraction": [],
  "during-compaction": [["completed", "After the summary."]],
  "compaction-failed": [],
  "during-title": [],
  replaced: [["completed", "Edited."]],
  budgeted: [["completed", "Within the budget."]],
  retained: [],
  "calling-agent": [["completed", "It says 42."]],
  "calling-helper": [["completed", "Forty-two."]],
  "asking-agent": [["completed", "It says 42."]],
  "asking-helper": [["completed", "Forty-two."]],
  unsent: [["completed", "It says both."]],
  undelivered: [["completed", "Nobody answers."]],
  leased: [["completed", "Within the lease."]],
  leasing: [["completed", "With a new lease."]],
  forked: [],
};

/** The other actor of a recorded conversation, by the name of its recording. */
export const PARTNERS: Record<string, string> = {
  "calling-agent": "calling-helper",
  "calling-helper": "calling-agent",
  "asking-agent": "asking-helper",
  "asking-helper": "asking-agent",
  leased: "agent-with-leases",
  leasing: "agent-with-leases",
};

/** The conversations with other work than model calls and tools of their own: the number of entries that its end writes, by type. */
export const RECORDED_ENTRIES: Record<string, Record<string, number>> = {
  "queued-turns": { "turn.completed": 3 },
  "queued-signals": { "turn.completed": 3 },
  "waiting-for-approval": { "approval.resolved": 1, "tool.completed": 1 },
  deferred: { "tool.completed": 1 },
  "during-context-hook": { "context_assembly.completed": 1 },
  "during-extraction": { "memory_extraction.completed": 1 },
  "during-compaction": { "context.compacted": 1 },
  "compaction-failed": {},
  "during-title": { "conversation.updated": 1 },
  replaced: { "turn.completed": 1 },
  budgeted: { "turn.completed": 1 },
  retained: {},
  "calling-agent": { "agent_call.completed": 1, "tool.completed": 1 },
  "calling-helper": { "conversation.ended": 1 },
  "asking-agent": { "approval.resolved": 1, "agent_call.completed": 1 },
  "asking-helper": { "approval.resolved": 1, "tool.completed": 1, "conversation.ended": 1 },
  unsent: { "agent_call.completed": 2 },
  undelivered: { "turn.completed": 1 },
  leased: { "turn.completed": 1 },
  leasing: { "budget.leased": 1, "turn.completed": 1 },
  forked: {},
};

/** The outputs of the recorded runs. The present code ends the runs that had not ended. */
export const RECORDED_OUTPUTS: Record<string, object> = {
  "run-during-tasks": { texts: ["Text of one.", "Text of held."], answer: { well: true } },
  "run-at-gate": { texts: ["Text of one.", "Text of two."], answer: { well: true } },
  "run-with-sub-workflow": { below: { texts: [] } },
  "run-failed": { texts: ["Text of one.", "Text of broken."], answer: { well: true } },
  "run-completed": { texts: ["Text of one."], answer: { well: true } },
};
