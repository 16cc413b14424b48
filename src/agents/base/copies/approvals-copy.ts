/**
 * The copy of the requests that wait for people, in the directory.
 *
 * INBOX-1  People answer a request at its actor. The directory only lists it. Requests work during an outage of the directory, and the list
 *          is complete afterwards (PUB-1).
 * INBOX-2  The listed requests of an actor fit into a value of D1. A list has at least the first request. A long prompt is cut.
 */
import type { Directory } from "../../../d1/directory.ts";
import type { ListedApproval } from "../../../protocol/waiting-approvals.ts";
import { wholeLength } from "../../../shared/text.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import { type CopiedData, Copy } from "./copy.ts";

/** Requests of one actor that are listed. Others follow as these are answered. */
const MAX_LISTED = 100;
/** Bytes of an input, and of all inputs of one actor, as JSON. Larger inputs are left out. */
const MAX_INPUT_BYTES = 64 * 1024;
const MAX_INPUTS_BYTES = 512 * 1024;
/** Length of a prompt in UTF-16 units. With its schema and approvers, which a definition bounds, a request fits into a value of D1. */
const MAX_PROMPT_LENGTH = 50_000;
/** Bytes of the listed requests of one actor, as JSON. A value of D1 has at most 2,000,000 bytes. */
const MAX_LIST_BYTES = 1_500_000;

interface ListedActor extends Pick<CopiedData<Directory>, "clock" | "wakeup" | "directory"> {
  /** Returns the actor's requests as of its newest journal entry. */
  waiting(): { tenant: string; place: string; seq: number; waiting: readonly ListedApproval[] };
}

export function approvalsCopy({ clock, wakeup, directory, waiting: read }: ListedActor): Copy {
  return new Copy({
    clock,
    wakeup,
    directory,
    put: (listed) => {
      const { tenant, place, seq, waiting } = read();
      return listed.putApprovals(tenant, place, seq, bounded(waiting));
    },
  });
}

function bounded(waiting: readonly ListedApproval[]): ListedApproval[] {
  const listed: ListedApproval[] = [];
  let inputs = 0;
  let bytes = 0;
  for (const { approval, approvers } of waiting.slice(0, MAX_LISTED)) {
    const { input, ...rest } = withShortPrompt(approval);
    const size = utf8Length(JSON.stringify(input ?? {}));
    const isLarge = size > Math.min(MAX_INPUTS_BYTES - inputs, MAX_INPUT_BYTES);
    const item = { approval: isLarge || input === undefined ? rest : { ...rest, input }, approvers };
    bytes += utf8Length(JSON.stringify(item));
    if (bytes > MAX_LIST_BYTES && listed.length > 0) break;
    if (!isLarge) inputs += size;
    listed.push(item);
  }
  return listed;
}

function withShortPrompt(approval: ListedApproval["approval"]): ListedApproval["approval"] {
  if (approval.kind !== "gate" || approval.prompt.length <= MAX_PROMPT_LENGTH) return approval;
  const prompt = approval.prompt.slice(0, wholeLength(approval.prompt, MAX_PROMPT_LENGTH - 1));
  return { ...approval, prompt: `${prompt}…` };
}
