/** The rare actions of a turn: its inspector, a fork, and the erasure of its content. The browser's popover handles focus and Escape. */
import { useCallback, useContext, useId, useRef, useState } from "react";
import type { TurnState } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { ConversationId } from "../conversation-id.ts";
import { messageOf } from "../format.ts";
import { conversationPath, turnPath } from "../route.ts";
import { navigate } from "../router.ts";
import { EraseDialog } from "./erase-dialog.tsx";
import { Icon } from "./icon.tsx";
import { IconButton } from "./icon-button.tsx";
import { Link } from "./link.tsx";

interface TurnMenuProps {
  turn: TurnState;
  /** Returns the name of an agent. */
  nameOf: (agentId: string) => string;
  isForkable: boolean;
  isErasable: boolean;
}

const ITEM =
  "flex w-full items-center gap-2.5 rounded-lg px-3 py-2 text-left text-sm hover:bg-sunken disabled:text-muted pointer-coarse:py-2.5";

export function TurnMenu({ turn, nameOf, isForkable, isErasable }: TurnMenuProps) {
  const id = useId();
  const menu = useRef<HTMLDivElement>(null);
  const conversationId = useContext(ConversationId);
  const [isErasing, setErasing] = useState(false);
  const endErasing = useCallback(() => setErasing(false), []);
  const [isForking, setForking] = useState(false);
  const [error, setError] = useState("");
  /** The focus returns to the button before a dialog opens. */
  const close = () => menu.current?.hidePopover();

  async function fork() {
    close();
    setForking(true);
    setError("");
    try {
      const made = await client.conversations.fork(conversationId, { turnId: turn.id });
      navigate(conversationPath(made.id));
    } catch (reason) {
      setError(messageOf(reason));
      setForking(false);
    }
  }

  return (
    <>
      <IconButton icon="more" name="More actions of this turn" popoverTarget={id} data-testid="turn-menu" />
      <div
        id={id}
        ref={menu}
        popover="auto"
        aria-live="off"
        className="menu w-56 rounded-2xl border border-line bg-surface p-1.5 text-ink shadow-lg"
      >
        <Link to={turnPath(conversationId, turn.id)} data-testid="inspect" className={ITEM}>
          <Icon name="search" />
          Inspect
        </Link>
        {isForkable && (
          <button
            type="button"
            disabled={isForking}
            onClick={() => void fork()}
            data-testid="fork"
            className={ITEM}
          >
            <Icon name="fork" />
            Fork from here
          </button>
        )}
        {isErasable && (
          <button
            type="button"
            onClick={() => {
              close();
              setErasing(true);
            }}
            aria-haspopup="dialog"
            data-testid="open-erase"
            className={`${ITEM} text-danger`}
          >
            <Icon name="trash" />
            Erase messages…
          </button>
        )}
      </div>
      {isErasing && <EraseDialog turn={turn} nameOf={nameOf} onClose={endErasing} />}
      {error !== "" && (
        <p role="alert" className="w-full text-xs text-danger wrap-anywhere">
          {error}
        </p>
      )}
    </>
  );
}
