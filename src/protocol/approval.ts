/** Approvals: the answers of people to calls of tools that must not run without one. */

/** The need of a tool's calls for an approval. `never` when absent. */
export type ApprovalNeed = "always" | "never";

/**
 * `approved` and `denied`: by a person. `expired`: nobody answered in time. `superseded`: a newer message came first, where
 * messages interrupt. Only `approved` lets the call run.
 */
export type ApprovalOutcome = "approved" | "denied" | "expired" | "superseded";

/** The answer to a request for approval. It has no input: what runs is the input that was shown. */
export interface ApprovalAnswer {
  approved: boolean;
  /** The model gets the reason of a denial. At most 500 characters. */
  reason?: string;
}
