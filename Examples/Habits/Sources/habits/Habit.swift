import Foundation
import SalternClient

/// A habit and the days on which it was kept.
nonisolated struct Habit: Codable, Sendable {
    var name: String
    var days: Set<String> = []
    var picture: Attachment?
}

/// Keeps the days that both devices added, and drops the days that one of them took back.
nonisolated func merged(_ base: Habit?, _ mine: Habit, _ theirs: Habit) -> Habit? {
    guard let base else { return nil }
    if mine.name != base.name, theirs.name != base.name, mine.name != theirs.name { return nil }
    let dropped = base.days.subtracting(mine.days).union(base.days.subtracting(theirs.days))
    return Habit(
        name: mine.name == base.name ? theirs.name : mine.name,
        days: mine.days.union(theirs.days).subtracting(dropped),
        picture: mine.picture == base.picture ? theirs.picture : mine.picture)
}

func habits(_ vault: Vault) -> VaultCollection<Habit> { vault.collection("habits", of: Habit.self) }

func setting(_ name: String) throws -> String {
    guard let value = ProcessInfo.processInfo.environment[name] else { throw Usage(text: "Set \(name).") }
    return value
}

func settings() throws -> VaultSettings {
    let certificate = try Data(contentsOf: URL(filePath: setting("HABITS_CERTIFICATE")))
    let server = try PinnedServer(
        base: setting("HABITS_SERVER"), pins: [setting("HABITS_PIN")], anchor: Array(certificate))
    var settings = VaultSettings(
        folder: URL(filePath: try setting("HABITS_FOLDER")), transport: try CurlTransport(server),
        stretching: StretchingRule(saltPrefix: "localhost.saltern:"), deviceName: try setting("HABITS_DEVICE"))
    settings.merge("habits", of: Habit.self, merged)
    return settings
}

struct Usage: LocalizedError {
    var text: String
    var errorDescription: String? { text }
}
