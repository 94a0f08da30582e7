// The C library's list of variables is a global that anybody might change; nothing in this program does.
@preconcurrency import Glibc

/// The variables that a process was given, byte for byte.
///
/// Foundation's takes "=" and a combining mark behind it for one character and loses the variable, and makes something else
/// of what is no UTF-8.
struct ProcessEnvironment {
    let variables: [String: String]
    /// The names of those whose value is no UTF-8. (In ``variables`` they are what they look like.)
    let unreadable: [String]

    /// - Parameter entries: As `NAME=VALUE`; of two with one name the first counts, as for `getenv`.
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

    /// The process's own.
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
/// The standard library reads them from `/proc/self/cmdline`, and libdispatch reads `/proc/self/task`. Both end the process where
/// there is no `/proc`, as in a chroot, so ``words`` says it before.
package enum ProcessArguments {
    /// The arguments behind the program's name. Ends the process with a message where there is no `/proc`.
    package static var words: [String] {
        guard access("/proc/self/cmdline", R_OK) == 0 else {
            let message = Array("/proc is missing, and this program needs it: mount -t proc proc /proc\n".utf8)
            _ = write(STDERR_FILENO, message, message.count)
            _exit(1)
        }
        return all.dropFirst().map { String(decoding: $0, as: UTF8.self) }
    }

    /// All of them byte for byte, the program's name first.
    static let all: [[UInt8]] = (0..<Int(CommandLine.argc)).compactMap { index in
        CommandLine.unsafeArgv[index].map { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
    }
}
