/**
 * What the generated code of `src/gen` is made with: the library's own, but for files. The library gathers the types of all
 * imports of all imports for each file, along every path that leads to them, which is half of a program's start. A file can
 * name only types of what it imports itself.
 */
import { type GenFile, fileDesc as libraryFileDesc } from "@bufbuild/protobuf/codegenv2";

export type { GenEnum, GenExtension, GenFile, GenMessage, GenService } from "@bufbuild/protobuf/codegenv2";
export { enumDesc, extDesc, messageDesc, serviceDesc } from "@bufbuild/protobuf/codegenv2";

/** A file by its encoded description and the files that it imports. */
export function fileDesc(encoded: string, imports: GenFile[] = []): GenFile {
  const withoutImports = imports.map((file) => ({ ...file, dependencies: [] }));
  return Object.assign(libraryFileDesc(encoded, withoutImports), { dependencies: imports });
}
