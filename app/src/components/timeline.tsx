/** The loaded turns of a conversation, and its pending messages. */
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type Content, isStopping, isTurnAnswering } from "../../../src/client/index.ts";
import type { UseConversationResult } from "../../../src/client/react/use-conversation.ts";
import { Approvals } from "../approvals.ts";
import { ConversationId } from "../conversation-id.ts";
import { useHistory } from "../hooks/use-history.ts";
import { usePinnedScroll } from "../hooks/use-pinned-scroll.ts";
import { useTurnInView } from "../hooks/use-turn-in-view.ts";
import { NestedTurns } from "../nested-turns.ts";
import { newMessageId } from "../own-message.ts";
import { useSession } from "../session.ts";
import { replacedTurns, shownTurns, threadsOf, turnsBefore, waitOf } from "../turns.ts";
import { CalledTurns } from "./called-turns.tsx";
import { EmptyConversation } from "./empty-conversation.tsx";
import { ErrorNote } from "./error-note.tsx";
import { HistoryLoader } from "./history-loader.tsx";
import { JumpToEnd } from "./jump-to-end.tsx";
import { PendingItem } from "./pending-item.tsx";
import { TurnBlock } from "./turn-block.tsx";
import { VersionPager } from "./version-pager.tsx";

/** The choice of the newest version. It is no id of a turn. */
const NEWEST = "newest";
/** The chosen versions, by place. */
const NO_CHOICE: ReadonlyMap<string, string> = new Map();

interface TimelineProps {
  id: string;
  /** The turn to begin at. */
  turnId: string | undefined;
  conversation: UseConversationResult;
  /** Returns the name of an agent. */
  nameOf: (agentId: string) => string;
}

export function Timeline({ id, turnId, conversation, nameOf }: TimelineProps) {
  const {
    state,
    status,
    stopped,
    ended,
    send,
    cancelTurn,
    retry,
    retryTurn,
    discard,
    resolveApproval,
    regenerate,
    edit,
  } = conversation;
  const approvals = useMemo(
    () => ({ resolve: resolveApproval, connected: status === "open" }),
    [resolveApproval, status],
  );
  const isClosed = stopped || ended;
  const isCompany =
    (state.conversation?.participants ?? []).filter(({ type }) => type === "agent").length > 1;
  const { reader } = useSession();
  const isShared = (state.conversation?.participants ?? []).some(
    ({ type, id }) => type === "user" && id !== reader?.subject,
  );
  const { turns, pending, error } = state;
  const history = useHistory(id, conversation);
  const { scroller, content, atEnd, toEnd, leaveEnd } = usePinnedScroll(turns[0]?.id);
  const sendContent = useCallback((sent: Content) => void send(sent, { id: newMessageId() }), [send]);
  const sendAgain = useCallback(
    (turnId: string) => void retryTurn(turnId, { id: newMessageId() }),
    [retryTurn],
  );
  const empty = state.conversation !== null && turns.length === 0 && pending.length === 0;
  const several = turns.filter(isTurnAnswering).length > 1;
  const threads = threadsOf(turns, state.messages);
  const replaced = replacedTurns(turns, state.messages);
  const [chosen, setChosen] = useState({ turnId, versions: NO_CHOICE });
  // A link to another turn ends the choice.
  const versions = chosen.turnId === turnId ? chosen.versions : NO_CHOICE;
  // With the newest version chosen, a version that comes later is shown.
  const choose = (place: string, version = NEWEST) =>
    setChosen({ turnId, versions: new Map(versions).set(place, version) });
  const newest = turns.findLast(({ id }) => !replaced.has(id))?.id;
  useJumpOnSend(pending.length, toEnd);
  useTurnInView(turnId, turns, history, leaveEnd);

  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div ref={scroller} className="relative min-h-0 flex-1 overflow-y-auto [overflow-anchor:none]">
        <div ref={content} className="mx-auto flex min-h-full max-w-3xl flex-col px-4 pt-6 pb-4">
          {turns.length > 0 && <HistoryLoader history={history} scroller={scroller} />}
          {empty && (
            <EmptyConversation
              agentId={state.conversation?.agentId}
              agentName={nameOf(state.conversation?.agentId ?? "")}
              onPick={isClosed ? undefined : sendContent}
            />
          )}
          <NestedTurns value={calledTurns}>
            <ConversationId value={id}>
              <Approvals value={approvals}>
                <div role="log" aria-live="off" aria-label="Messages" className="space-y-8">
                  {shownTurns(turns, state.messages, versions, turnId).map((shown) => {
                    const { turn, place } = shown;
                    const index = shown.versions.indexOf(turn.id);
                    const isEditable = !isClosed && turn.id === newest;
                    // The reader sees the new version, also on the page of a link to the old version.
                    const renewed = <Answer,>(answer: Answer) => {
                      choose(place);
                      return answer;
                    };
                    return (
                      <div key={place} className="space-y-2">
                        <TurnBlock
                          key={turn.id}
                          turn={turn}
                          nameOf={nameOf}
                          isCompany={isCompany}
                          isThread={threads.has(turn.id)}
                          isSought={turn.id === turnId}
                          isErasable
                          waitsFor={turnsBefore(turns, turn)}
                          stopping={isStopping(state, turn.id)}
                          onStop={several || waitOf(turn) !== null ? cancelTurn : undefined}
                          onRetry={isClosed ? undefined : sendAgain}
                          isReplaced={replaced.has(turn.id)}
                          onEdit={isEditable ? (...edited) => renewed(edit(...edited)) : undefined}
                          isForkable={state.conversation?.calledBy === undefined}
                          isShared={isShared}
                          onRegenerate={isEditable ? (old) => renewed(regenerate(old)) : undefined}
                        />
                        {index >= 0 && (
                          <VersionPager
                            index={index}
                            count={shown.versions.length}
                            onChoose={(to) => choose(place, shown.versions.slice(0, -1)[to])}
                          />
                        )}
                      </div>
                    );
                  })}
                  {pending.map((message) => (
                    <PendingItem
                      key={message.clientId}
                      message={message}
                      onRetry={retry}
                      onDiscard={discard}
                    />
                  ))}
                </div>
              </Approvals>
            </ConversationId>
          </NestedTurns>
          {error !== null && (
            <div className="mt-6">
              <ErrorNote text={error.message} />
            </div>
          )}
        </div>
      </div>
      {!atEnd && <JumpToEnd onClick={toEnd} />}
    </div>
  );
}

function calledTurns(id: string) {
  return <CalledTurns key={id} id={id} />;
}

/** Scrolls to the end when the reader sends a message. */
function useJumpOnSend(pendingCount: number, toEnd: () => void): void {
  const before = useRef(pendingCount);
  useEffect(() => {
    if (pendingCount > before.current) toEnd();
    before.current = pendingCount;
  }, [pendingCount, toEnd]);
}
