/** Starts the console. */
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { SignInGate } from "./components/sign-in.tsx";
import { startSession } from "./session.ts";
import "./styles.css";

const root = document.getElementById("root");
if (root === null) throw new Error('index.html has no element with the id "root".');

void startSession();
createRoot(root).render(
  <StrictMode>
    <SignInGate />
  </StrictMode>,
);
