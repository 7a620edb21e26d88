/** Runs the bundle that the first argument names, with the other arguments. */
import { bundleScript, runBundle } from "./bundle-script.ts";

const [node = "", , bundle = "", ...args] = process.argv;
process.argv = [node, bundle, ...args];
runBundle(bundle, bundleScript(bundle));
