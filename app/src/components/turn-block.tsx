/**
 * One turn: question, work and answers. It renders again only when it changes. Screen readers announce a turn that runs while
 * the page is open. They announce streamed text when it is complete. They do not announce a loaded turn.
 */
import { memo, useContext, useState } from "react";
import { type MessageView, type TurnItem, type TurnState, textOf } from "../../../src/client/index.ts";
import { ConversationId } from "../conversation-id.ts";
import { useSpeaker } from "../hooks/use-speaker.ts";
import { isOwnMessage } from "../own-message.ts";
import { waitOf, wasStopped } from "../turns.ts";
import { AgentMessage } from "./agent-message.tsx";
import { AnswerAgain } from "./answer-again.tsx";
import { CopyButton } from "./copy-button.tsx";
import { EditMessage } from "./edit-message.tsx";
import { IconButton } from "./icon-button.tsx";
import { Thinking } from "./thinking.tsx";
import { Thought } from "./thought.tsx";
import { ToolItem } from "./tool-item.tsx";
import { TraceDialog } from "./trace-dialog.tsx";
import { TurnButton } from "./turn-button.tsx";
import { TurnError } from "./turn-error.tsx";
import { TurnMenu } from "./turn-menu.tsx";
import { TurnNotes } from "./turn-notes.tsx";
import { TurnProgress } from "./turn-progress.tsx";
import { TurnStopped } from "./turn-stopped.tsx";
import { UserMessage } from "./user-message.tsx";

interface TurnBlockProps {
  turn: TurnState;
  /** Returns the name of an agent. */
  nameOf: (agentId: string) => string;
  /** Several agents take part: their messages show their names. */
  isCompany: boolean;
  /** Messages of other turns stand between the parts of this turn. A border marks its parts as one thread. */
  isThread: boolean;
  /** A link leads to this turn. */
  isSought?: boolean;
  /** The reader may erase messages of the turn. */
  isErasable?: boolean;
  /** Number of turns that this turn waits for; 0 if it runs or is over. */
  waitsFor: number;
  /** The turn is being stopped. */
  stopping: boolean;
  /** Stops only this turn. Absent if no other turn answers and this turn runs. */
  onStop: ((turnId: string) => void) | undefined;
  /** A later turn replaced this turn. */
  isReplaced?: boolean;
  /** Answers the turn's message again; absent while the conversation takes no message. */
  onRegenerate?: ((turnId: string) => Promise<unknown>) | undefined;
  /** Replaces the turn's message; absent while the conversation takes no message. */
  onEdit?: ((turnId: string, text: string) => Promise<unknown>) | undefined;
  /** The reader may fork the conversation after the turn. */
  isForkable?: boolean;
  /** Other people than the reader take part: their messages show their names. */
  isShared?: boolean;
  /** Sends the turn's message again; absent while the conversation takes no message. */
  onRetry: ((turnId: string) => void) | undefined;
}

/** The label of a thread: a turn that ran at the same time as others. */
const BESIDE = "Answered in parallel with other messages";

export const TurnBlock = memo(function TurnBlock(props: TurnBlockProps) {
  const {
    turn,
    nameOf,
    isCompany,
    isThread,
    isErasable = false,
    isReplaced = false,
    onRegenerate,
    onEdit,
    isForkable = false,
    isShared = false,
    waitsFor,
    stopping,
    onStop,
    onRetry: retryTurn,
  } = props;
  const active = turn.status === "active";
  const author = useSpeaker(useContext(ConversationId), turn.id, isShared);
  const isOwn = author === "You";
  const [live] = useState(active);
  const onRetry = retryTurn === undefined || !isRepeatable(turn) ? undefined : () => retryTurn(turn.id);
  const wait = waitOf(turn);
  const isWaiting = waitsFor > 0 || wait !== null;
  const thinks = active && !isWaiting && !turn.retrying && !showsProgress(turn.items);
  const block = (
    <section
      aria-live={live ? "polite" : "off"}
      data-turn={turn.id}
      data-thread={isThread}
      {...(isThread ? { "aria-label": BESIDE, title: BESIDE } : {})}
      tabIndex={props.isSought === true ? -1 : undefined}
      className={`-ml-3 space-y-4 border-l-2 pl-2.5 outline-none ${borderOf(props)}`}
    >
      {turn.items.map((item) => (
        <Item
          key={item.id}
          item={item}
          nameOf={nameOf}
          isCompany={isCompany}
          active={active}
          agentId={turn.agentId}
          turnId={turn.id}
          author={author}
          onEdit={active || isReplaced || !isOwn ? undefined : onEdit}
        />
      ))}
      {thinks && <Thinking agentName={nameOf(turn.agentId)} />}
      {wasStopped(turn) && <TurnStopped onRetry={onRetry} />}
      {turn.error !== undefined && !wasStopped(turn) && <TurnError error={turn.error} onRetry={onRetry} />}
      <div className="-ml-2 flex flex-wrap items-center gap-x-0.5 empty:hidden">
        {!active && <CopyAnswer turn={turn} />}
        {onRegenerate !== undefined && isOwn && !active && !isReplaced && isOfPerson(turn) && (
          <AnswerAgain onRegenerate={() => onRegenerate(turn.id)} />
        )}
        {hasTrace(turn) && (
          <>
            <TurnButton
              icon="list"
              name="Trace of this answer"
              testId="open-trace"
              dialog={(onClose) => <TraceDialog turn={turn} nameOf={nameOf} onClose={onClose} />}
            />
            <TurnMenu
              turn={turn}
              nameOf={nameOf}
              isForkable={isForkable && turn.status === "completed"}
              isErasable={isErasable && !active}
            />
          </>
        )}
        <TurnNotes turn={turn} />
      </div>
      {active && onStop !== undefined && (
        <TurnProgress waitsFor={waitsFor} wait={wait} stopping={stopping} onStop={() => onStop(turn.id)} />
      )}
    </section>
  );
  if (!isReplaced) return block;
  return (
    <div data-testid="earlier-version" className="space-y-3 rounded-xl border border-line px-4 py-3">
      <p className="text-xs text-muted">Earlier version. The agents no longer see it.</p>
      {block}
    </div>
  );
});

function borderOf({ turn, isThread, isSought }: TurnBlockProps): string {
  if (isSought === true) return "border-caution";
  if (!isThread) return "border-transparent";
  return turn.status === "active" ? "border-accent" : "border-line";
}

interface ItemProps {
  item: TurnItem;
  nameOf: (agentId: string) => string;
  isCompany: boolean;
  agentId: string;
  turnId: string;
  active: boolean;
  author: string | undefined;
  onEdit: TurnBlockProps["onEdit"];
}

const Item = memo(function Item({ item, nameOf, isCompany, agentId, active, ...own }: ItemProps) {
  switch (item.type) {
    case "message":
      return item.message.role === "user" && item.message.runId === undefined ? (
        <OwnMessage message={item.message} {...own} />
      ) : (
        <AgentMessage
          content={item.message.content}
          agentName={speakerOf(item.message, (id = agentId) => nameOf(id))}
          isNamed={isCompany || item.message.runId !== undefined || item.message.notice === true}
          createdAt={item.message.createdAt}
        />
      );
    case "partial":
      return item.text === "" ? null : (
        <AgentMessage
          content={item.text}
          agentName={nameOf(item.agentId)}
          isNamed={isCompany}
          createdAt={item.startedAt}
          streaming
        />
      );
    case "thought":
      return <Thought text={item.text} />;
    case "tool":
      return <ToolItem operation={item.operation} active={active} />;
    default:
      return item satisfies never;
  }
});

interface OwnMessageProps extends Pick<ItemProps, "turnId" | "author" | "onEdit"> {
  message: MessageView;
}

/** A message of a person. A message of text only can be edited. */
function OwnMessage({ message: { content, createdAt }, turnId, author, onEdit }: OwnMessageProps) {
  const [isEditing, setEditing] = useState(false);
  if (isEditing && onEdit !== undefined)
    return (
      <EditMessage
        text={textOf(content)}
        onSave={(text) => onEdit(turnId, text)}
        onClose={() => setEditing(false)}
      />
    );
  return (
    <div className="flex flex-col items-end gap-1 *:first:w-full">
      <UserMessage content={content} createdAt={createdAt} author={author} />
      {onEdit !== undefined && typeof content === "string" && (
        <IconButton
          icon="pencil"
          name="Edit this message"
          onClick={() => setEditing(true)}
          data-testid="edit"
        />
      )}
    </div>
  );
}

/** Copies the texts of the answer. */
function CopyAnswer({ turn: { items } }: { turn: TurnState }) {
  const text = items
    .flatMap((item) =>
      item.type === "message" && item.message.role === "agent" ? [textOf(item.message.content)] : [],
    )
    .join("\n\n");
  return text === "" ? null : <CopyButton text={text} about="this answer" />;
}

/** Growing text or a running tool shows that the turn is active. */
function showsProgress(items: readonly TurnItem[]): boolean {
  return items.some(
    (item) =>
      (item.type === "partial" && item.text !== "") ||
      (item.type === "tool" && item.operation.state === "running" && !item.operation.async),
  );
}

/** Reports whether there is work to show: the turn is over, or has called a tool. */
function hasTrace({ status, phase, items }: TurnState): boolean {
  return phase !== "queued" && (status !== "active" || items.some(({ type }) => type === "tool"));
}

/** Reports whether a person's message began the turn. */
function isOfPerson({ items }: TurnState): boolean {
  return items.some(
    (item) => item.type === "message" && item.message.role === "user" && item.message.runId === undefined,
  );
}

/** Reports whether the console sent the turn's message. Other clients may send options, and a turn does not show them. */
function isRepeatable({ items }: TurnState): boolean {
  const item = items.find((candidate) => candidate.type === "message" && candidate.message.role === "user");
  return item?.type === "message" && isOwnMessage(item.message.clientId);
}

/** Returns the name above a message of an agent, a run or the platform. */
function speakerOf(
  { runId, notice, agentId }: Extract<TurnItem, { type: "message" }>["message"],
  nameOf: (agentId?: string) => string,
): string {
  if (notice === true) return "Notice";
  return runId === undefined ? nameOf(agentId) : "A workflow";
}
