/** The class of containers for `shell.exec`. Export it, and bind it as `SHELL`. See `docs/workspaces.md`. */
import { Container } from "@cloudflare/containers";

/**
 * A container that runs the commands of one workspace. It sleeps ten minutes after the last command. Commands have no network.
 *
 * @example
 * export class ShellContainer extends BaseShellContainer {
 *   override sleepAfter = "1h";
 * }
 */
export class ShellContainer<Env = unknown> extends Container<Env> {
  override defaultPort = 8080;
  override sleepAfter = "10m";
  override enableInternet = false;
}
