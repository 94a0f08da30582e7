import CommandLineKit
import Glibc

/// Reads settings from variables, and collects every problem so that the operator sees all of them at once.
///
/// Values are exact: values that do not match the handbook are rejected. Nothing is trimmed or guessed.
struct Settings {
    private let variables: [String: String]
    /// One message for each problem.
    private(set) var problems: [String] = []

    init(_ variables: [String: String]) { self.variables = variables }

    /// Adds a problem from outside the reader.
    mutating func note(_ problem: String) { problems.append(problem) }

    /// Adds a problem with a value that is not secret.
    /// - Parameter rule: The required form, with its bounds.
    mutating func refuse(_ setting: Setting, _ value: String, mustBe rule: String) {
        note("\(setting) must be \(rule), not \(String(value.prefix(100)).debugDescription)")
    }

    /// Returns the text of a setting, or of the file that its `_FILE` variable names, without trailing line ends.
    ///
    /// Rejects an empty value: for the default, leave the variable out or write it. Rejects invisible white space at
    /// either end.
    mutating func text(_ setting: Setting) -> String? {
        guard let value = word(setting) else { return nil }
        return isExact(value, setting) ? value : nil
    }

    /// Returns the text of a setting; nil if it is `word`, the value for "none".
    mutating func text(_ setting: Setting, orNothing word: String) -> String? {
        guard let value = text(setting), value != word else { return nil }
        guard value.lowercased() == word else { return value }
        note("\(setting) is \(value.debugDescription) and must be written \(word)")
        return nil
    }

    mutating func requiredText(_ setting: Setting, _ meaning: String) -> String {
        let before = problems.count
        let value = possiblyEmptyText(setting) ?? ""
        if value.contains(where: { !$0.isWhitespace }) { return isExact(value, setting) ? value : "" }
        if problems.count == before { problems.append("\(setting) is missing: \(meaning)") }
        return ""
    }

    /// Returns the text of a setting with its white space, for callers that reject it with the required form.
    private mutating func word(_ setting: Setting) -> String? {
        guard let value = possiblyEmptyText(setting) else { return nil }
        guard value.isEmpty else { return value }
        note(Self.isEmpty("\(setting)"))
        return nil
    }

    private mutating func isExact(_ value: String, _ setting: Setting) -> Bool {
        guard value.first?.isWhitespace ?? false || value.last?.isWhitespace ?? false else { return true }
        // The value may be a secret.
        note("\(setting) begins or ends with white space")
        return false
    }

    private mutating func possiblyEmptyText(_ setting: Setting) -> String? {
        switch (variables[setting.description], variables[setting.fileVariable]) {
        case (nil, nil): return nil
        case (let value?, nil): return value
        case (nil, let path?): return contents(of: path, setting.fileVariable)
        case (_?, _?):
            problems.append("\(setting) and \(setting.fileVariable) are both set; use one")
            return nil
        }
    }

    private mutating func contents(of path: String, _ variable: String) -> String? {
        guard !path.isEmpty else {
            note("\(variable) is empty: leave it out, or name a file")
            return nil
        }
        do throws(TextFile.Failure) {
            let contents = try TextFile.contents(atPath: path, limit: 1 << 20)
            if !contents.isEmpty { return contents }
            note("\(variable): the file \(path) is empty")
        } catch {
            note("\(variable): cannot read the file \(path): \(error)")
        }
        return nil
    }

    mutating func integer(_ setting: Setting, in range: ClosedRange<Int>, default fallback: Int) -> Int {
        guard let value = word(setting) else { return fallback }
        guard let number = OperatorNumber.integer(value), range.contains(number) else {
            refuse(setting, value, mustBe: "a whole number from \(range.lowerBound) to \(range.upperBound)")
            return fallback
        }
        return number
    }

    /// Returns a time such as `90s`, `15m`, `12h` or `30d`.
    mutating func duration(_ setting: Setting, in range: ClosedRange<Duration>, default fallback: Duration) -> Duration
    {
        guard let value = word(setting) else { return fallback }
        guard let duration = OperatorTime.duration(value), range.contains(duration) else {
            refuse(
                setting, value, mustBe: "a time such as 90s, 15m, 12h or 30d, from \(OperatorTime.text(range))")
            return fallback
        }
        return duration
    }

    mutating func choice<Value>(_ setting: Setting, _ choices: KeyValuePairs<String, Value>, default fallback: Value)
        -> Value
    {
        guard let word = word(setting) else { return fallback }
        if let match = choices.first(where: { $0.key == word }) { return match.value }
        refuse(setting, word, mustBe: "one of \(choices.map(\.key).joined(separator: ", "))")
        return fallback
    }

    /// Ends the reading.
    ///
    /// Variables that begin with `SALTERN_` are rejected if no command has them, so that a typing error does not count
    /// as a default. Empty ones are rejected even if this command does not read them. Variables that a container
    /// platform writes for a service called saltern are ignored (``ServiceLink``).
    /// - Throws: ``CommandFailure`` with every problem.
    func finish() throws(CommandFailure) {
        let problems = variables.keys.sorted().filter { $0.hasPrefix("SALTERN_") }.compactMap(problem(with:)) + problems
        if !problems.isEmpty { throw CommandFailure(problems) }
    }

    /// Returns the problem with a variable of any command, if it was not added before.
    private func problem(with name: String) -> String? {
        let base = name.hasSuffix("_FILE") ? String(name.dropLast(5)) : name
        guard Setting.isKnown(name) || Setting.isKnown(base) else {
            return ServiceLink.isOne(name, variables[name] ?? "") ? nil : "\(name) is not a setting"
        }
        guard variables[name] == "", !problems.contains(where: { $0.hasPrefix("\(name) ") }) else { return nil }
        return Self.isEmpty(name)
    }

    private static func isEmpty(_ name: String) -> String { "\(name) is empty: leave it out, or give it a value" }
}

/// Variables of container platforms: Kubernetes writes them for every Service of a namespace, Docker for linked
/// containers.
///
/// A Service called `saltern` or `saltern-metrics` has such variables with this program's prefix. They are recognised
/// by name and value, so an operator's unknown setting is still rejected.
/// - SeeAlso: https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
enum ServiceLink {
    /// Returns true if a platform has written the variable.
    static func isOne(_ name: String, _ value: String) -> Bool {
        let service = #/SALTERN(?:_[A-Z0-9]+)*/#
        guard name.prefixMatch(of: service) != nil else { return false }
        if name.hasSuffix("_SERVICE_HOST") || name.wholeMatch(of: #/.+_PORT_[0-9]+_(?:TCP|UDP|SCTP)_ADDR/#) != nil {
            return value.wholeMatch(of: #/[0-9A-Fa-f.:]+/#) != nil
        }
        if name.wholeMatch(of: #/.+_SERVICE_PORT(?:_[A-Z0-9_]+)?/#) != nil
            || name.wholeMatch(of: #/.+_PORT_[0-9]+_(?:TCP|UDP|SCTP)_PORT/#) != nil
        {
            return value.wholeMatch(of: #/[0-9]{1,5}/#) != nil
        }
        if name.wholeMatch(of: #/.+_PORT_[0-9]+_(?:TCP|UDP|SCTP)_PROTO/#) != nil {
            return ["tcp", "udp", "sctp"].contains(value)
        }
        if name.hasSuffix("_PORT") || name.wholeMatch(of: #/.+_PORT_[0-9]+_(?:TCP|UDP|SCTP)/#) != nil {
            return value.wholeMatch(of: #/(?:tcp|udp|sctp):\/\/\[?[0-9A-Fa-f.:]+\]?:[0-9]{1,5}/#) != nil
        }
        // Docker's name for a link, as in /web/saltern.
        return name.hasSuffix("_NAME") && value.wholeMatch(of: #/\/[^\/]+\/[^\/]+/#) != nil
    }
}

/// Small text files that contain secrets.
enum TextFile {
    /// The reason why a file cannot be used, without any of its content.
    struct Failure: Error, CustomStringConvertible {
        let description: String

        fileprivate static var system: Failure { Failure(description: String(cString: strerror(errno))) }
    }

    /// Returns the content without trailing line ends. Rejects a named pipe without waiting for it (`O_NONBLOCK`).
    static func contents(atPath path: String, limit: Int) throws(Failure) -> String {
        let descriptor = openedAlready(path) ?? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw .system }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .system }
        guard status.st_mode & S_IFMT == S_IFREG else {
            let isDirectory = status.st_mode & S_IFMT == S_IFDIR
            throw Failure(description: isDirectory ? "it is a directory" : "it is not a regular file")
        }
        let bytes = try bytes(of: descriptor, limit: limit)
        guard let text = String(validating: bytes, as: UTF8.self) else { throw Failure(description: "it is not UTF-8") }
        // C code would stop reading there.
        guard !bytes.contains(0) else { throw Failure(description: "it contains a NUL byte") }
        guard !text.hasPrefix("\u{FEFF}") else { throw Failure(description: "it begins with a byte order mark") }
        return String(text.reversed().drop { $0.isNewline }.reversed())
    }

    /// Duplicates the descriptor that `/dev/fd/N` names; nil for other paths.
    ///
    /// Opening that path would open the file again with the rights of this process, which may not suffice. The caller
    /// may have opened the file for that reason.
    private static func openedAlready(_ path: String) -> CInt? {
        guard path.hasPrefix("/dev/fd/"), let number = OperatorNumber.integer(path.dropFirst(8)),
            (0...1_023).contains(number)
        else { return nil }
        return fcntl(CInt(number), F_DUPFD_CLOEXEC, 3)
    }

    private static func bytes(of descriptor: CInt, limit: Int) throws(Failure) -> ArraySlice<UInt8> {
        var bytes = [UInt8](repeating: 0, count: limit + 1)
        var count = 0
        while count < bytes.count {
            let more = bytes.withUnsafeMutableBytes { buffer in
                // From the beginning, even if the descriptor was read before.
                pread(descriptor, buffer.baseAddress?.advanced(by: count), buffer.count - count, off_t(count))
            }
            if more < 0, errno == EINTR { continue }
            guard more >= 0 else { throw .system }
            if more == 0 { return bytes[..<count] }
            count += more
        }
        throw Failure(description: "it is longer than \(limit) bytes")
    }
}
