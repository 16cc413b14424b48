import { createClient } from "dramatis/client";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Chat } from "./chat";
import "./style.css";

const KEY = "conversation";

/** Returns the conversation of this tab, which a reload keeps. */
async function conversation(): Promise<string> {
  const stored = sessionStorage.getItem(KEY);
  if (stored !== null) return stored;
  const client = createClient({ baseUrl: location.origin });
  const { id } = await client.conversations.create({ agentId: "assistant" });
  sessionStorage.setItem(KEY, id);
  return id;
}

const root = document.getElementById("root");
if (root === null) throw new Error("The page has no root.");
const id = await conversation();
createRoot(root).render(
  <StrictMode>
    <Chat id={id} />
  </StrictMode>,
);
