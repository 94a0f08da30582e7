import Cryptography

@testable import SalternClient

/// What a person sees of an item.
struct WrittenVersion: Hashable, Comparable {
    var collection: String
    var title: String?
    var text: String

    init(collection: String, title: String?, text: String) {
        self.collection = collection
        self.title = title
        self.text = text
    }

    init(_ item: PlainItem, in collection: String) {
        self.collection = collection
        title = item.title
        text = item.body.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }

    var item: PlainItem { PlainItem(title: title, body: SecureBytes(copying: text.utf8)) }

    static func < (left: Self, right: Self) -> Bool {
        (left.text, left.title ?? "", left.collection) < (right.text, right.title ?? "", right.collection)
    }
}

/// What a person does to an item.
enum WrittenStep: Sendable {
    /// - Parameter over: What they saw and changed.
    case write(WrittenVersion, over: WrittenVersion?)
    case delete(ItemID, seen: WrittenVersion)
    case restore(ItemID)

    /// Whether it has happened, on the device where it was begun.
    func hasHappened(_ present: [ItemID: WrittenVersion]) -> Bool {
        switch self {
        case .write(let version, _): present.values.contains(version)
        case .delete(let id, _): present[id] == nil
        case .restore(let id): present[id] != nil
        }
    }
}

/// Which versions a person wrote and has not replaced or deleted where they could see them.
struct WrittenVersions {
    private(set) var leaves: Set<WrittenVersion> = []
    /// What somebody has fetched from the trash, where it can be beside a copy that was kept of it.
    private(set) var restored: Set<WrittenVersion> = []
    private var count = 0

    /// A name that no version has had.
    mutating func name(_ kind: String) -> String {
        count += 1
        return "\(kind) \(count)"
    }

    /// Notes what has happened.
    /// - Parameter present: What is on the device where it happened, for what was restored.
    mutating func note(_ step: WrittenStep, _ present: [ItemID: WrittenVersion]) {
        switch step {
        case .write(let version, let seen):
            if let seen { leaves.remove(seen) }
            leaves.insert(version)
        case .delete(_, let seen): leaves.remove(seen)
        case .restore(let id):
            guard let version = present[id] else { return }
            leaves.insert(version)
            restored.insert(version)
        }
    }
}

extension Sequence<WrittenVersion> {
    /// Those that are there more than once.
    var equalOnes: Set<WrittenVersion> { Set(Dictionary(grouping: self) { $0 }.filter { $1.count > 1 }.keys) }
}
