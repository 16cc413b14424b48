/** A page on `useConversation` that runs a client tool. The query names the conversation. */
import { createRoot } from "react-dom/client";
import { useConversation } from "../../../src/client/react/use-conversation.ts";

const place = {
  name: "place",
  description: "Returns where the reader is.",
  inputSchema: { type: "object" as const, properties: {} },
};

let runs = 0;

/** Runs in one of several tabs, and counts its runs there. */
function locate() {
  runs += 1;
  document.title = `ran ${runs}`;
  return { city: "Berlin" };
}

function Chat({ id }: { id: string }) {
  const { messages, send, status } = useConversation(id, { clientTools: { place: locate } });
  return (
    <main data-status={status}>
      <form action={(form) => void send(String(form.get("text")), { tools: [place] })}>
        <input name="text" />
      </form>
      {messages.map(({ id: key, content }) => (
        <p key={key}>{String(content)}</p>
      ))}
    </main>
  );
}

const id = new URLSearchParams(location.search).get("id");
const root = document.getElementById("root");
if (id !== null && root !== null) createRoot(root).render(<Chat id={id} />);
