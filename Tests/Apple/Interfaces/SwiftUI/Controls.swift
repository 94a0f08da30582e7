public import Foundation

/// https://developer.apple.com/documentation/swiftui/text
public struct Text: StandInView {
    nonisolated public init(_ key: LocalizedStringKey) {}
    @_disfavoredOverload nonisolated public init(_ content: some StringProtocol) {}
}

/// https://developer.apple.com/documentation/swiftui/textfield
public struct TextField: StandInView {
    nonisolated public init(_ titleKey: LocalizedStringKey, text: Binding<String>) {}
}

/// https://developer.apple.com/documentation/swiftui/securefield
public struct SecureField: StandInView {
    nonisolated public init(_ titleKey: LocalizedStringKey, text: Binding<String>) {}
    @_disfavoredOverload nonisolated public init(_ title: some StringProtocol, text: Binding<String>) {}
}

/// https://developer.apple.com/documentation/swiftui/texteditor
public struct TextEditor: StandInView {
    nonisolated public init(text: Binding<String>) {}
}

/// https://developer.apple.com/documentation/swiftui/buttonrole
public struct ButtonRole: Sendable {
    public static var destructive: ButtonRole { ButtonRole() }
}

/// https://developer.apple.com/documentation/swiftui/button
public struct Button<Label: View>: StandInView {
    /// https://developer.apple.com/documentation/swiftui/button/init(action:label:)
    nonisolated public init(action: @escaping @MainActor () -> Void, @ViewBuilder label: () -> Label) {}
}

extension Button where Label == Text {
    /// https://developer.apple.com/documentation/swiftui/button/init(_:action:)
    nonisolated public init(_ titleKey: LocalizedStringKey, action: @escaping @MainActor () -> Void) {}
    @_disfavoredOverload
    nonisolated public init(_ title: some StringProtocol, action: @escaping @MainActor () -> Void) {}
    /// https://developer.apple.com/documentation/swiftui/button/init(_:role:action:)
    nonisolated public init(
        _ titleKey: LocalizedStringKey, role: ButtonRole?, action: @escaping @MainActor () -> Void
    ) {}
}

/// https://developer.apple.com/documentation/swiftui/picker
public struct Picker<Selection: Hashable, Content: View>: StandInView {
    nonisolated public init(
        _ titleKey: LocalizedStringKey, selection: Binding<Selection>, @ViewBuilder content: () -> Content
    ) {}
}

/// https://developer.apple.com/documentation/swiftui/sharelink
public struct ShareLink: StandInView {
    /// https://developer.apple.com/documentation/swiftui/sharelink/init(item:subject:message:)
    nonisolated public init(item: URL) {}
}
