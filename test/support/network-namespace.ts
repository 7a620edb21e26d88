/** A network namespace with one interface, for tests that change what is in it. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const exec = promisify(execFile);

export interface CommandOutput {
  readonly stdout: string;
  readonly stderr: string;
}

export class NetworkNamespace implements AsyncDisposable {
  readonly #name: string;

  private constructor(name: string) {
    this.#name = name;
  }

  /** Addresses with their lengths, of either family. */
  static async open(name: string, addresses: readonly string[]): Promise<NetworkNamespace> {
    const namespace = new NetworkNamespace(name);
    await exec("ip", ["netns", "add", name]);
    try {
      await namespace.run("ip link set lo up");
      await namespace.run("ip link add eth0 type veth peer name eth0-peer");
      await namespace.run("ip link set eth0 up");
      for (const address of addresses) await namespace.run(`ip address add ${address} dev eth0`);
      return namespace;
    } catch (error) {
      await namespace[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The file that stands for it. */
  get path(): string {
    return `/run/netns/${this.#name}`;
  }

  /** Runs a program in it; words of a line are separated by blanks. Fails when the program does. */
  async run(command: string | readonly string[]): Promise<CommandOutput> {
    const words = typeof command === "string" ? command.split(" ") : command;
    return exec("ip", ["netns", "exec", this.#name, ...words]);
  }

  /** Everything about packets that can be seen in it: rules of iptables and of nft (family inet), policy routes, loopback addresses. */
  async state(): Promise<string> {
    const lines = [
      "iptables-nft-save",
      "ip6tables-nft-save",
      "iptables-legacy-save",
      "ip6tables-legacy-save",
      "nft -s list ruleset inet",
      "ip -4 rule",
      "ip -6 rule",
      "ip -4 route show table all type local",
      "ip -6 -oneline address show dev lo",
    ];
    const outputs = await Promise.all(lines.map((line) => this.run(line)));
    return outputs
      .map(({ stdout }, index) => `== ${lines[index]}\n${stdout}`)
      .join("")
      .replaceAll(/^#.*\n| \[\d+:\d+\]/gm, "");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await exec("ip", ["netns", "del", this.#name]);
  }
}
