/** Runs a command to its end. Prints its output only if it fails. */
import { spawn } from "node:child_process";

export async function runCommand(
  file: string,
  args: string[],
  options: { cwd: string; env?: Record<string, string> },
): Promise<void> {
  const env = { ...process.env, ...options.env };
  const child = spawn(file, args, { cwd: options.cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  const output: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => output.push(chunk));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code === 0) return;
  const command = [file, ...args].join(" ");
  throw new Error(`${command} exited with ${code}:\n${Buffer.concat(output).toString()}`);
}
