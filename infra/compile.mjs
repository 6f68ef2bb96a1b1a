// Compiles a directory's Python files with CPython 3.14, the functions' version, in WebAssembly:
// the host's own Python may be another, and byte-code of another version is of no use.
// Usage: node compile.mjs DIRECTORY PATH_IN_THE_FUNCTION
import { loadPyodide } from "pyodide";

const python = await loadPyodide();
const [directory, path] = process.argv.slice(2);
python.mountNodeFS(path, directory);
python.globals.set("path", path);
const compiled = python.runPython(`
import compileall, py_compile
compileall.compile_dir(
    path, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
)
`);
process.exit(compiled ? 0 : 1);
