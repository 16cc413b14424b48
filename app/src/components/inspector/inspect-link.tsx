/** A link from a turn of a conversation to its inspector. */
import { useContext } from "react";
import { ConversationId } from "../../conversation-id.ts";
import { turnPath } from "../../route.ts";
import { Link } from "../link.tsx";
import { ACTION } from "../turn-button.tsx";

export function InspectLink({ turnId }: { turnId: string }) {
  const conversationId = useContext(ConversationId);
  return (
    <Link to={turnPath(conversationId, turnId)} data-testid="inspect" className={ACTION}>
      Inspect<span className="sr-only"> this turn</span>
    </Link>
  );
}
