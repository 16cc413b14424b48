/** The embedded shell in Node. The suite on workerd runs the same contract. */
import { embeddedShell } from "../../src/agents/workspace/shell/shell.ts";
import { shellContract } from "../support/shell-contract.ts";

shellContract("embedded in Node", embeddedShell);
