import Foundation
import SalternClient

let usage = """
    habits sign-up USERID | log-in USERID | recover USERID PRINTED-CODE
           add NAME | keep NAME DAY | rename NAME NEW | delete NAME | undelete | list | watch
           picture NAME FILE | save-picture NAME FILE | share NAME
           sync | notices | lock | unlock | log-in-again
           change-password | print-code | lost-device | sign-out [discard]
    """

func ask(_ question: String) throws -> String {
    try FileHandle.standardError.write(contentsOf: Data("\(question): ".utf8))
    guard let line = readLine() else { throw Usage(text: "no answer") }
    return line
}

func find(_ name: String, in vault: Vault) async throws -> ItemID {
    let found = try await habits(vault).contents().entries.first { $0.value.name == name }
    guard let found else { throw Usage(text: "no habit \(name)") }
    return found.id
}

func show(_ habits: [Habit]) {
    for habit in habits {
        print(habit.name, habit.days.sorted().joined(separator: " "), habit.picture == nil ? "" : "with a picture")
    }
}

/// Opens the vault of this device: the first launch, or a later one.
func open(_ command: String, _ words: [String]) async throws -> Vault {
    let settings = try settings()
    switch (command, words.count) {
    case ("sign-up", 1):
        return try await Vault.signUp(settings, userid: words[0], password: Password(ask("Password")))
    case ("log-in", 1):
        let password = Password(try ask("Password"))
        var code: String?
        while true {
            do {
                return try await Vault.logIn(settings, userid: words[0], password: password, code: code)
            } catch {
                switch error {
                case .codeRequired, .wrongCode: code = try ask("Code")
                default: throw error
                }
            }
        }
    case ("recover", 2):
        guard let code = RecoveryCode(words[1]) else { throw VaultError.malformedRecoveryCode }
        return try await Vault.recover(
            settings, userid: words[0], code: code, newPassword: Password(ask("New password")))
    default:
        guard let vault = try await Vault.resume(settings) else { throw Usage(text: "Sign up or log in.") }
        return vault
    }
}

/// Changes habits. Returns false for another command, like the next two functions.
func change(_ command: String, _ words: [String], in vault: Vault) async throws -> Bool {
    switch (command, words.count) {
    case ("add", 1): try await habits(vault).put(Habit(name: words[0]))
    case ("keep", 2): try await habits(vault).edit(find(words[0], in: vault)) { $0.days.insert(words[1]) }
    case ("rename", 2):
        let id = try await find(words[0], in: vault)
        guard var entry = try await habits(vault).entry(id) else { throw VaultError.notFound }
        entry.value.name = words[1]
        let kept = try await habits(vault).put(entry.value, id, over: entry.version)
        if kept != id { print("The habit was changed meanwhile. This is a second one.") }
    case ("delete", 1): try await habits(vault).delete(find(words[0], in: vault))
    case ("undelete", 0):
        for item in try await vault.deletedItems() { try await habits(vault).restore(item.id) }
    case ("picture", 2):
        let picture = try await vault.attach(file: URL(filePath: words[1])) { progress in
            print("\(progress.byteCount) of \(progress.total) bytes")
        }
        try await habits(vault).edit(find(words[0], in: vault)) { $0.picture = picture }
    default: return false
    }
    return true
}

func read(_ command: String, _ words: [String], in vault: Vault) async throws -> Bool {
    switch (command, words.count) {
    case ("list", 0):
        let contents = try await habits(vault).contents(sorted: .by(\.name))
        show(contents.values)
        for (id, reason) in contents.unreadable { print("\(id): \(reason)") }
        print("\(try await vault.unsentCount()) waiting")
    case ("save-picture", 2):
        guard let picture = try await habits(vault)[find(words[0], in: vault)]?.picture else {
            throw VaultError.notFound
        }
        try await vault.save(picture, to: URL(filePath: words[1]))
    case ("share", 1):
        let text = try await habits(vault)[find(words[0], in: vault)]?.days.sorted().joined(separator: "\n") ?? ""
        guard let server = URL(string: try setting("HABITS_SERVER")) else { throw Usage(text: "no server") }
        print(try await vault.share(text: text, base: server, expiresAt: Date() + 86_400, maxViews: 3).url)
    case ("notices", 0):
        for notice in try await vault.notices() {
            print("\(notice.kind): \(notice.localizedDescription)")
            try await vault.forget(notice)
        }
    case ("watch", 0):
        let list = Task {
            for await now in habits(vault).observe(sorted: .by(\.name)) { show(now.entries.map(\.value)) }
        }
        let states = Task { for await state in await vault.states() { print(state.localizedDescription) } }
        defer {
            list.cancel()
            states.cancel()
        }
        try await vault.keepInSync()
    default: return false
    }
    return true
}

func manage(_ command: String, _ words: [String], _ vault: Vault) async throws -> Bool {
    switch (command, words.count) {
    case ("sign-up", 1), ("log-in", 1), ("recover", 2), ("sync", 0): try await vault.sync()
    case ("lock", 0): try await vault.lock()
    case ("unlock", 0): try await vault.unlock(Password(ask("Password")))
    case ("log-in-again", 0): try await vault.logInAgain(password: Password(ask("Password")))
    case ("change-password", 0):
        try await vault.changePassword(from: Password(ask("Password")), to: Password(ask("New password")))
    case ("print-code", 0): print(try await vault.makeRecoveryCode(password: Password(ask("Password"))).text)
    case ("lost-device", 0):
        let code = try await vault.shutOutLostDevice(
            password: Password(ask("Password")), newPassword: Password(ask("New password")))
        print(code?.text ?? "no printed code")
    case ("sign-out", 0...1):
        let discards = words == ["discard"]
        if !discards { _ = try? await vault.sync() }
        try await vault.signOut(discardingUnsentEdits: discards)
    default: return false
    }
    return true
}

do {
    guard let command = CommandLine.arguments.dropFirst().first else { throw Usage(text: usage) }
    let words = Array(CommandLine.arguments.dropFirst(2))
    let vault = try await open(command, words)
    if await vault.isLocked, !["unlock", "log-in-again"].contains(command) { throw VaultError.locked }
    var isDone = try await change(command, words, in: vault)
    if !isDone { isDone = try await read(command, words, in: vault) }
    if !isDone { isDone = try await manage(command, words, vault) }
    if !isDone { throw Usage(text: usage) }
} catch {
    print(error.localizedDescription)
    exit(1)
}
