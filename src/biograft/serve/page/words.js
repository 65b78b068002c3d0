"use strict";
/* What the page says, in two languages. */
const WORDS = {
  en: {
    searchLabel: "Search a concept", review: "Review", kept: "Kept in the review.", conflict: "Not saved:", help: "Keys", text: "Text", find: "Find and link",
    file: "Open a file", example: "Example", findings: "Findings", threshold: "Hide scores below",
    copy: "Copy as", paste: "Paste a text, or drop a file here.",
    correct: "correct", wrong: "wrong", other: "another concept", neighbours: "Neighbours",
    keys: "Keys", key: "Key", use: "Use", close: "Close", working: "Linking ...", none: "No finding in this text.",
    found: (n) => `${n} findings`, copied: (kind) => `Copied as ${kind}.`, nil: "no concept",
    score: "score", probability: "probability", names: "names", types: "types", ids: "codes",
    parents: "parents", noDefinition: "No definition.", noHits: "Nothing begins so.",
    failed: "The service cannot be reached.", pick: "Choose the right concept in the search.",
    ambiguous: "the same name belongs to", candidates: "Candidates",
    status: {absent: "absent", possible: "possible", historical: "historical", family: "family",
      hypothetical: "hypothetical", conditional: "conditional", other_person: "other person",
      unlikely: "unlikely", planned: "planned", active: "active", resolved: "resolved",
      recurrent: "recurrent", donor: "donor"},
    keyList: [["Ctrl Enter", "find and link"], ["j  k", "next, previous finding"],
      ["c  w  o", "correct, wrong, another concept"], ["/", "search a concept"],
      ["Esc", "close"], ["?", "these keys"]],
    sample: "Discharge summary\n\nType 2 diabetes and hypertension. Denies chest pain.\n" +
      "Mother had breast cancer. Suspected pneumonia; started amoxicillin.\n" +
      "Return if you develop a rash or vomitting.",
  },
  zh: {
    searchLabel: "搜索概念", review: "审核", kept: "已存入审核库。", conflict: "未保存：", help: "快捷键", text: "文本", find: "识别并链接",
    file: "打开文件", example: "示例", findings: "结果", threshold: "隐藏低于此分数的结果",
    copy: "复制为", paste: "粘贴文本，或将文件拖到这里。",
    correct: "正确", wrong: "错误", other: "其他概念", neighbours: "相邻概念",
    keys: "快捷键", key: "密钥", use: "使用", close: "关闭", working: "正在链接……", none: "文本中没有找到概念。",
    found: (n) => `共 ${n} 个结果`, copied: (kind) => `已复制为 ${kind}。`, nil: "无对应概念",
    score: "分数", probability: "概率", names: "名称", types: "类型", ids: "编码",
    parents: "上级概念", noDefinition: "没有定义。", noHits: "没有匹配的名称。",
    failed: "无法连接服务。", pick: "请在搜索框中选择正确的概念。",
    ambiguous: "同名的还有", candidates: "候选概念",
    status: {absent: "否认", possible: "可能", historical: "既往", family: "家族",
      hypothetical: "假设", conditional: "有条件", other_person: "他人",
      unlikely: "可能性小", planned: "计划", active: "活动期", resolved: "已缓解",
      recurrent: "复发", donor: "供者"},
    keyList: [["Ctrl Enter", "识别并链接"], ["j  k", "下一个、上一个结果"],
      ["c  w  o", "正确、错误、其他概念"], ["/", "搜索概念"],
      ["Esc", "关闭"], ["?", "显示快捷键"]],
    sample: "主诉：咳嗽、发热3天。\n现病史：患者3天前出现咳嗽、发热，否认胸痛。患2型糖尿病10年，口服二甲双胍。\n" +
      "家族史：母亲患乳腺癌。\n初步诊断：肺炎？",
  },
};
