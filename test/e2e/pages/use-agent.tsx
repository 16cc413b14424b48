/** A page on the SDK's own hook alone: it sends `turn.start` and shows the messages of the frames. The query names the conversation. */
import { useAgent } from "agents/react";
import { useState } from "react";
import { createRoot } from "react-dom/client";

/** The part of a frame that the page reads. */
interface Frame {
  type: string;
  messageId?: string;
  data: {
    content?: string;
    text?: string;
    messages?: { id: string; content: string }[];
    partials?: { messageId: string; text: string }[];
  };
}

type Texts = Record<string, string>;

/** Returns the texts of all messages, by their ids, after a frame. */
function read(texts: Texts, { type, messageId = "", data }: Frame): Texts {
  switch (type) {
    case "snapshot":
      return Object.fromEntries([
        ...(data.messages ?? []).map(({ id, content }) => [id, content]),
        ...(data.partials ?? []).map((partial) => [partial.messageId, partial.text]),
      ]);
    case "message.user":
    case "message.completed":
      return { ...texts, [messageId]: data.content ?? texts[messageId] ?? "" };
    case "message.delta":
      return { ...texts, [messageId]: (texts[messageId] ?? "") + data.text };
    default:
      return texts;
  }
}

function Chat({ id }: { id: string }) {
  const [texts, setTexts] = useState<Texts>({});
  const [ended, setEnded] = useState(false);
  const agent = useAgent({
    agent: "conversation",
    name: id,
    onMessage: (event) => {
      const frame: Frame = JSON.parse(event.data);
      setTexts((before) => read(before, frame));
      if (frame.type === "turn.completed") setEnded(true);
    },
  });
  const send = (content: string) => {
    agent.send(JSON.stringify({ v: 1, type: "turn.start", id: crypto.randomUUID(), content }));
  };
  return (
    <main data-ended={ended}>
      <form action={(form) => send(String(form.get("text")))}>
        <input name="text" />
      </form>
      {Object.entries(texts).map(([key, text]) => (
        <p key={key}>{text}</p>
      ))}
    </main>
  );
}

const root = document.getElementById("root");
const id = new URLSearchParams(location.search).get("id");
if (root !== null && id !== null) createRoot(root).render(<Chat id={id} />);
