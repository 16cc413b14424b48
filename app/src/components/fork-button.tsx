/** A button below a turn that continues the conversation from there in a new conversation. */
import { useState } from "react";
import { client } from "../client.ts";
import { messageOf } from "../format.ts";
import { conversationPath } from "../route.ts";
import { navigate } from "../router.ts";
import { Icon } from "./icon.tsx";
import { ACTION } from "./turn-button.tsx";

export function ForkButton({ id, turnId }: { id: string; turnId: string }) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const fork = async () => {
    setBusy(true);
    setError("");
    try {
      const made = await client.conversations.fork(id, { turnId });
      navigate(conversationPath(made.id));
    } catch (reason) {
      setError(messageOf(reason));
      setBusy(false);
    }
  };
  return (
    <>
      <button
        type="button"
        disabled={isBusy}
        onClick={() => void fork()}
        data-testid="fork"
        className={ACTION}
      >
        <Icon name="fork" className="size-3.5" />
        {isBusy ? "Forking…" : "Fork"}
        <span className="sr-only"> the conversation after this turn</span>
      </button>
      {error !== "" && (
        <p role="alert" className="w-full text-xs text-danger">
          {error}
        </p>
      )}
    </>
  );
}
