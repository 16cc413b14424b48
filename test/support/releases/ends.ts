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
};
