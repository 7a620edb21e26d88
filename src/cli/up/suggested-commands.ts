/** Command lines of a mesh.yaml as a person would type them. */

export interface SuggestionWords {
  /** How this program is called. */
  readonly mizzen: string;
  /** Folder of the mesh file. */
  readonly folder: string;
  /** What chooses the mesh among several that are up, such as `--mesh shop`; empty for the only one. */
  readonly choice: string;
}

/** The program and its command, with those that the command is below of: options belong to the last one. */
const PROGRAM = /\{mizzen\}((?: (?:proxy-config|pc|experimental|x|authz))* [a-z][a-z-]*)?/g;

/** The command line with its placeholders filled in. */
export function suggestedCommand(run: string, { mizzen, folder, choice }: SuggestionWords): string {
  const option = choice === "" ? "" : ` ${choice}`;
  return run
    .replaceAll(PROGRAM, (_, command?: string) => `${mizzen}${command === undefined ? "" : command + option}`)
    .replaceAll("{folder}", folder);
}
