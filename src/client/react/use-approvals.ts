/** The requests that wait for the caller: calls of tools, and gates of runs. */
import type { ApprovalAnswer } from "../../protocol/requests.ts";
import type { WaitingApproval } from "../../protocol/waiting-approvals.ts";
import { defined } from "../../shared/defined.ts";
import type { Json } from "../../shared/json.ts";
import type { DramatisClient } from "../api.ts";
import { asClientError, type DramatisClientError, wrongInput } from "../errors.ts";
import { announceAnswer, isAnswered, onAnswer } from "./answers.ts";
import { LiveList } from "./live-list.ts";
import { Shared, type SharedOptions, useShared } from "./use-shared.ts";

export interface UseApprovalsResult {
  /** The requests, newest first. Empty until they are loaded. */
  approvals: readonly WaitingApproval[];
  /** `true` until the first answer of the server. */
  loading: boolean;
  /** The failure of the last request for the list. The known requests stay, except after a refusal. */
  error?: DramatisClientError;
  /** `true` if the server has more requests: show a button that calls `loadMore`. */
  more: boolean;
  loadMore(): void;
  /** Loads the list again. The hook does this every 15 seconds, and when the reader returns to the page. */
  refresh(): void;
  /**
   * Answers a request: the call of a tool with `{ approved, reason }`, a gate with JSON that fits its `schema`. The request then leaves the
   * list in all tabs. Fails with `CONFLICT` or `NOT_FOUND` if the request no longer waits.
   */
  answer(approval: WaitingApproval, answer: Json): Promise<void>;
  /** Denies a request. Fails with `INVALID_INPUT` for a gate that is no yes-or-no question. */
  deny(approval: WaitingApproval, reason?: string): Promise<void>;
}

const REFRESH_MS = 15_000;

class LiveApprovals extends LiveList<WaitingApproval> {
  constructor(private readonly client: DramatisClient) {
    const load: LiveList<WaitingApproval>["load"] = async (page) => {
      const { approvals, ...rest } = await client.approvals.list(page);
      return { items: open(approvals), ...rest };
    };
    super(load, REFRESH_MS);
  }

  readonly answer = async (approval: WaitingApproval, answer: Json): Promise<void> => {
    const { operationId } = approval;
    try {
      await this.#send(approval, answer);
    } catch (cause) {
      const error = asClientError(cause);
      if (error.code === "CONFLICT" || error.code === "NOT_FOUND") announceAnswer(operationId);
      throw error;
    }
    announceAnswer(operationId);
  };

  readonly deny = async (approval: WaitingApproval, reason?: string): Promise<void> => {
    const isGate = approval.kind === "gate";
    if (isGate && approval.question === "human.input")
      throw wrongInput(
        "INVALID_INPUT",
        "This gate asks for an input. Call `answer` with a value that fits its schema.",
      );
    await this.answer(approval, { approved: false, ...defined(isGate ? { comment: reason } : { reason }) });
  };

  protected override start(): () => void {
    const stop = super.start();
    const leave = onAnswer(() => {
      const { items } = this.getSnapshot();
      this.change(defined({ items: items && open(items) }));
    });
    return () => {
      leave();
      stop();
    };
  }

  async #send(approval: WaitingApproval, answer: Json): Promise<void> {
    const { operations, runs } = this.client;
    const { operationId, kind } = approval;
    switch (kind) {
      case "tool":
        // SAFETY: the server checks the answer.
        await operations.resolveApproval(approval.conversationId, operationId, answer as ApprovalAnswer);
        return;
      case "gate":
        await runs.answer(approval.runId, operationId, answer);
        return;
      default:
        kind satisfies never;
        throw wrongInput("INVALID_INPUT", "Pass a request of `approvals`.");
    }
  }
}

const NONE: readonly WaitingApproval[] = [];

function open(approvals: readonly WaitingApproval[]): WaitingApproval[] {
  return approvals.filter((approval) => !isAnswered(approval));
}

const shared = new Shared((client) => new LiveApprovals(client));

/**
 * Lists the requests that wait for the caller, in all conversations and runs, and answers them. Answer a call with an `elicitation`
 * with `{ approved: true, round: approval.elicitation.round, values: {} }`; `values` fit its `schema`.
 *
 * @example
 * function Inbox() {
 *   const { approvals, answer, deny } = useApprovals();
 *   return approvals.map((approval) => (
 *     <p key={approval.operationId}>
 *       {approval.kind === "tool" ? approval.name : approval.prompt}
 *       <button onClick={() => answer(approval, { approved: true })}>Approve</button>
 *       <button onClick={() => deny(approval, "Too expensive.")}>Deny</button>
 *     </p>
 *   ));
 * }
 */
export function useApprovals(options: SharedOptions = {}): UseApprovalsResult {
  const store = useShared(shared, options);
  const { items, more, error } = store.getSnapshot();
  const { answer, deny, refresh, loadMore } = store;
  const loading = items === undefined && error === undefined;
  return { approvals: items ?? NONE, loading, more, ...defined({ error }), answer, deny, refresh, loadMore };
}
