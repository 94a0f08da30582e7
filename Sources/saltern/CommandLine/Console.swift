import Glibc

/// Standard output, standard error and the environment, handed to commands so that tests can replace them.
struct Console: Sendable {
    let environment: [String: String]
    let write: @Sendable (String) -> Void
    let writeBytes: @Sendable ([UInt8]) -> Void
    let writeError: @Sendable (String) -> Void

    /// Prints a line.
    func print(_ line: String = "") { write(line + "\n") }

    /// The process's own.
    static func process() -> Console {
        Console(
            environment: ProcessEnvironment.variables, write: { fputs($0, stdout) },
            writeBytes: { fwrite($0, 1, $0.count, stdout) }, writeError: { fputs($0, stderr) })
    }
}

/// The process's environment as it was at the start.
enum ProcessEnvironment {
    static var variables: [String: String] {
        var result: [String: String] = [:]
        guard var entry = environ else { return result }
        while let text = entry.pointee {
            let pair = String(cString: text)
            if let equals = pair.firstIndex(of: "=") {
                result[String(pair[..<equals])] = String(pair[pair.index(after: equals)...])
            }
            entry += 1
        }
        return result
    }
}
