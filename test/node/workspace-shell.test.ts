/** The embedded shell in Node. The suite on workerd runs the same contract, with commands that take seconds. */
import { embeddedShell } from "../../src/agents/workspace/shell/shell.ts";
import { shellContract } from "../support/shell-contract.ts";

shellContract("embedded in Node", embeddedShell, { hasLongCommands: false });
