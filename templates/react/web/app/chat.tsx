import { textOf } from "dramatis/client";
import { useConversation } from "dramatis/react";

export function Chat({ id }: { id: string }) {
  const { messages, send, answering, stop, error } = useConversation(id);
  return (
    <>
      <h1>my-app</h1>
      <ol aria-live="polite">
        {messages.map(({ key, role, content }) => (
          <li key={key} className={role}>
            {textOf(content)}
          </li>
        ))}
      </ol>
      {error && <p role="alert">{error.message}</p>}
      <form action={(form) => void send(String(form.get("text")))}>
        <input name="text" aria-label="Message" placeholder="What is 12 * 34?" required />
        <button type="submit">Send</button>
        {answering && (
          <button type="button" onClick={() => stop()}>
            Stop
          </button>
        )}
      </form>
    </>
  );
}
