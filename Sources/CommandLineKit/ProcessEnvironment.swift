// The C library's list of variables is a mutable global. This program never changes it.
@preconcurrency import Glibc

/// The environment variables of the process, byte for byte.
///
/// Foundation's dictionary loses variables with a combining mark after "=", because both are one character. It also
/// alters values that are not UTF-8.
struct ProcessEnvironment {
    let variables: [String: String]
    /// The names of variables that are not UTF-8. (``variables`` has an approximation.)
    let unreadable: [String]

    /// - Parameter entries: `NAME=VALUE` each. The first of a name counts, as for `getenv`.
    init(_ entries: some Sequence<[UInt8]>) {
        var variables: [String: String] = [:]
        var unreadable: [String] = []
        for entry in entries {
            guard let sign = entry.firstIndex(of: UInt8(ascii: "=")),
                let name = String(validating: entry[..<sign], as: UTF8.self), variables[name] == nil
            else { continue }
            let value = entry[(sign + 1)...]
            if String(validating: value, as: UTF8.self) == nil { unreadable.append(name) }
            variables[name] = String(decoding: value, as: UTF8.self)
        }
        self.variables = variables
        self.unreadable = unreadable.sorted()
    }

    /// Reads the environment of the process.
    static func process() -> ProcessEnvironment {
        let entries = sequence(state: environ) { next in
            defer { next += 1 }
            return next.pointee.map { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
        }
        return ProcessEnvironment(entries)
    }

    /// True when an argument of the process is not UTF-8. ``ProcessArguments/words`` has a different text for it.
    static var hasUnreadableWords: Bool {
        ProcessArguments.all.contains { String(validating: $0, as: UTF8.self) == nil }
    }
}

/// The arguments of the process.
///
/// The standard library reads `/proc/self/cmdline`, and libdispatch `/proc/self/task`. Without `/proc`, as in a chroot,
/// both end the process, so ``words`` reports it first.
package enum ProcessArguments {
    /// The arguments after the program's name. Ends the process with a message without `/proc`.
    package static var words: [String] {
        guard access("/proc/self/cmdline", R_OK) == 0 else {
            let message = Array("/proc is missing, and this program needs it: mount -t proc proc /proc\n".utf8)
            _ = write(STDERR_FILENO, message, message.count)
            _exit(1)
        }
        return all.dropFirst().map { String(decoding: $0, as: UTF8.self) }
    }

    /// All arguments byte for byte, the program's name first.
    static let all: [[UInt8]] = (0..<Int(CommandLine.argc)).compactMap { index in
        CommandLine.unsafeArgv[index].map { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
    }
}
